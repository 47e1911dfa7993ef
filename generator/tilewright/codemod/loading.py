"""Which modules of a package Python loads on the way to one of them, as far as the source shows it."""

import ast
import re
from collections.abc import Iterator

from tilewright.codemod.package import Package
from tilewright.codemod.package import executed

_FINDS_FOLDERS = re.compile(rb"\biter_modules\(")


def loaded_with(package: Package, module: str) -> set[str]:
    """Modules that are loaded once `module` is imported; every branch of an `if` or `try` counts."""
    loaded: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in loaded or name not in package.modules:
            continue
        loaded.add(name)
        waiting += _parents(name)
        waiting += _imported(package, name)
    return loaded


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _imported(package: Package, module: str) -> Iterator[str]:
    for statement in executed(package.tree(module).body):
        match statement:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=source, names=names, level=level):
                base = ".".join(filter(None, [_relative_to(package, module, level), source]))
                yield base
                yield from (f"{base}.{alias.name}" for alias in names)  # each may be a module
    if package.is_package(module) and _FINDS_FOLDERS.search(package.source(module)):
        yield from (name for name in package.modules if name.rpartition(".")[0] == module and package.is_package(name))


def _relative_to(package: Package, module: str, level: int) -> str:
    if level == 0:
        return ""
    parts = module.split(".")
    return ".".join(parts[: len(parts) - level + package.is_package(module)])
