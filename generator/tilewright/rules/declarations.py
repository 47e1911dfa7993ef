"""What a module declares: dispatch stubs, and the implementations of backends."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.rules.source import Module


@dataclass(frozen=True, eq=False, kw_only=True)
class Declaration:
    """`@dispatch(key)`, or with a backend `@register_impl(key, backend)`."""

    key: str
    backend: str | None
    module: "Module"
    node: ast.Call
    function: ast.FunctionDef | None  # None where what is registered is no function of this module

    @property
    def conditional(self) -> bool:
        """Whether an `if` or `try` decides about it."""
        return any(isinstance(each, ast.If | ast.Try) for each in self.module.ancestors(self.node))


def find_declarations(module: "Module") -> tuple[Declaration, ...]:
    """All declarations that importing a module makes, in order; those whose key is no literal are left out."""
    found = []
    for call in module.nodes(ast.Call):
        kind = module.names.backend(call.func)
        if kind not in ("dispatch", "register_impl"):
            continue
        given = dict(zip(("name", "backend"), call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        key = _string(given.get("name"))
        backend = _string(given.get("backend")) if kind == "register_impl" else None
        around = module.parent(call)
        if key is None or (kind == "register_impl" and backend is None) or not _on_import(module, call):
            continue
        function = around if isinstance(around, ast.FunctionDef) else None
        if isinstance(around, ast.Call) and around.func is call:  # register_impl("bmm", backend="torch")(reference)
            function = next(_functions(module, around), None)
        found.append(Declaration(key=key, backend=backend, module=module, node=call, function=function))
    return tuple(sorted(found, key=lambda each: each.node.lineno))


def _on_import(module: "Module", call: ast.Call) -> bool:
    around = module.function_of(call)
    return around is None or (call in around.decorator_list and module.function_of(around) is None)


def _functions(module: "Module", registered: ast.Call) -> Iterator[ast.FunctionDef]:
    for argument in registered.args:
        if isinstance(argument, ast.Name):
            function = module.functions.get(argument.id)
            if isinstance(function, ast.FunctionDef):
                yield function


def _string(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
