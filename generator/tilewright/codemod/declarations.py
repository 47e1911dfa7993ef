"""What a module declares: dispatch stubs and the implementations of backends."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.codemod.package import Package
from tilewright.codemod.package import executed

_DECLARES = re.compile(rb"\b(?:dispatch|register_impl)\s*\(")


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """`@dispatch(operator)`, or with a backend `@register_impl(operator, backend)`."""

    operator: str
    backend: str | None
    module: str
    function: str
    line: int


def declarations(package: Package, operator: str = "") -> Iterator[Declaration]:
    """All declarations of a package, or quickly those of one operator."""
    for module in package.modules:
        source = package.source(module)
        if not _DECLARES.search(source) or operator.encode() not in source:
            continue
        for declared, backend, function, line in _in_tree(package.tree(module)):
            if operator in ("", declared):
                yield Declaration(operator=declared, backend=backend, module=module, function=function, line=line)


def _in_tree(tree: ast.Module) -> Iterator[tuple[str, str | None, str, int]]:
    for statement in executed(tree.body):
        calls: list[ast.expr] = []
        function = ""
        match statement:
            case ast.FunctionDef(name=function, decorator_list=calls):
                pass
            case ast.Expr(value=ast.Call(func=registration, args=[implementation])):
                # register_impl("bmm", backend="tilecpp")(bmm_memref)
                calls = [registration]
                function = implementation.id if isinstance(implementation, ast.Name) else ""
            case _:
                continue
        for call in calls:
            found = _declared(call)
            if found:
                yield (*found, function, statement.lineno)


def _declared(call: ast.expr) -> tuple[str, str | None] | None:
    match call:
        case ast.Call(func=ast.Name(id=kind) | ast.Attribute(attr=kind)):
            given = dict(zip(("name", "backend"), call.args, strict=False))
            given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        case _:
            return None
    name, backend = (_string(given.get(key)) for key in ("name", "backend"))
    if name is None or kind not in ("dispatch", "register_impl"):
        return None
    if kind == "dispatch":
        return name, None
    return (name, backend) if backend else None


def _string(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
