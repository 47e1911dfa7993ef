"""The dotted names of a package that a file uses, whatever it imports them as."""

import ast


def mentions(tree: ast.Module, package: str) -> set[str]:
    """Names such as `tilegym.ops.softmax` that the file imports or reaches through something imported."""
    aliases: dict[str, str] = {}
    chains: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:  # `import a.b` binds a, `import a.b as c` binds a.b
                    name = alias.name if alias.asname else alias.name.split(".")[0]
                    aliases[alias.asname or name] = name
            case ast.ImportFrom(module=str(module), names=names, level=0):
                for alias in names:
                    aliases[alias.asname or alias.name] = f"{module}.{alias.name}"
            case ast.Attribute():
                chains.add(_dotted(node))
    used = set(aliases.values())
    for chain in chains:
        first, _, rest = chain.partition(".")
        if first in aliases:
            used.add(f"{aliases[first]}.{rest}")
    return {name for name in used if name.startswith(f"{package}.")}


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute):
            base = _dotted(value)
            return f"{base}.{attribute}" if base else ""
    return ""
