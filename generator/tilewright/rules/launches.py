"""Launches of kernels: which kernel, over which grid, with which arguments for which parameters."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.rules.kernels import Kernel

if TYPE_CHECKING:
    from tilewright.rules.source import Module

_REPLACE_HINTS = ("replace_hints", "cached_replace_hints")
_SEARCH = ("configs", "stream", "grid_fn", "kernel", "args_fn", "hints_fn")
_DEPTH = 6  # names followed from one launch: an alias of an alias of an alias is rare


@dataclass(frozen=True, eq=False)
class Launch:
    """One `ct.launch`, or one `exhaustive_search`, whose grid and arguments are what its functions return."""

    node: ast.Call
    function: ast.FunctionDef | ast.AsyncFunctionDef | None  # around the call
    stream: ast.expr | None
    grid: ast.expr | None
    kernel: ast.expr | None  # as written
    kernels: tuple[Kernel, ...]  # every kernel of this module that it may be; empty where one cannot be told
    arguments: tuple[ast.expr, ...] | None  # None where the tuple cannot be told
    search: bool = False  # for autotuning

    def bound(self, kernel: Kernel) -> dict[str, ast.expr]:
        """What is passed for each parameter; empty where the arguments are unknown or their number is wrong."""
        if self.arguments is None or len(self.arguments) != len(kernel.parameters):
            return {}
        return {each.name: value for each, value in zip(kernel.parameters, self.arguments, strict=True)}


def find_launches(module: "Module") -> tuple[Launch, ...]:
    """All launches and searches of a module, in order."""
    found = []
    for node in module.nodes(ast.Call):
        match module.names.tile(node.func):
            case "launch":
                given = _given(node, ("stream", "grid", "kernel", "kernel_args"))
                found.append(_launch(module, node, given["grid"], given["kernel_args"], given))
            case "tune.exhaustive_search":
                given = _given(node, _SEARCH)
                grid, arguments = (_returned(module, given[key], node) for key in ("grid_fn", "args_fn"))
                found.append(_launch(module, node, grid, arguments, given, search=True))
    return tuple(sorted(found, key=lambda launch: (launch.node.lineno, launch.node.col_offset)))


def values_of(module: "Module", node: ast.expr, at: ast.AST) -> Iterator[ast.expr]:
    """What an expression may be: itself, or for a name all that is assigned to it in the function around `at`.

    Both branches of a conditional expression count. A name whose value is not assigned directly (a parameter, a loop
    variable, part of a tuple) is given as it is.
    """
    yield from _values(module, node, at, _DEPTH)


def _values(module: "Module", node: ast.expr, at: ast.AST, depth: int) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from _values(module, node.body, at, depth)
        yield from _values(module, node.orelse, at, depth)
        return
    assigned = _assigned(module, node.id, at) if isinstance(node, ast.Name) and depth else []
    if not assigned:
        yield node
    for value in assigned:
        yield from _values(module, value, at, depth - 1)


def _assigned(module: "Module", name: str, at: ast.AST) -> list[ast.expr]:
    """Values assigned to a name in the nearest function that binds it, or at module level; none if one is not plain."""
    for scope in [*(each for each in module.ancestors(at) if isinstance(each, ast.FunctionDef)), module.tree]:
        bindings = module.bindings(scope).get(name)
        if bindings is not None:
            values = [value for value in bindings if value is not None]
            return values if len(values) == len(bindings) else []
    return []


def _launch(
    module: "Module",
    node: ast.Call,
    grid: ast.expr | None,
    arguments: ast.expr | None,
    given: dict[str, ast.expr | None],
    *,
    search: bool = False,
) -> Launch:
    kernel = given["kernel"]
    return Launch(
        node=node,
        function=module.function_of(node),
        stream=given["stream"],
        grid=grid,
        kernel=kernel,
        kernels=_kernels(module, kernel, node) if kernel is not None else (),
        arguments=_elements(module, arguments, node) if arguments is not None else None,
        search=search,
    )


def _given(call: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr | None]:
    given: dict[str, ast.expr | None] = dict.fromkeys(names)
    if not any(isinstance(each, ast.Starred) for each in call.args):
        given |= dict(zip(names, call.args, strict=False))
    return given | {each.arg: each.value for each in call.keywords if each.arg in names}


def _returned(module: "Module", function: ast.expr | None, at: ast.AST) -> ast.expr | None:
    """What a lambda, or a nested function of one return, gives back."""
    if isinstance(function, ast.Name):
        name = function.id
        for each in (*module.nodes(ast.FunctionDef), *module.nodes(ast.Assign)):
            if isinstance(each, ast.FunctionDef):
                returns = [node for node in ast.walk(each) if isinstance(node, ast.Return)]
                if each.name == name and module.function_of(each) is module.function_of(at) and len(returns) == 1:
                    return returns[0].value
        values = list(values_of(module, function, at))
        function = values[0] if len(values) == 1 else None
    return function.body if isinstance(function, ast.Lambda) else None


def _kernels(module: "Module", node: ast.expr, at: ast.AST) -> tuple[Kernel, ...]:
    by_name = {kernel.name: kernel for kernel in module.kernels}
    found: list[Kernel] = []
    for value in values_of(module, node, at):
        while isinstance(value, ast.Call):
            value = _unhinted(value) or value.func
            if not isinstance(value, ast.Call | ast.Name):
                break
        if not isinstance(value, ast.Name) or value.id not in by_name:
            return ()
        if by_name[value.id] not in found:
            found.append(by_name[value.id])
    return tuple(found)


def _unhinted(call: ast.Call) -> ast.expr | None:
    """The kernel in `kernel.replace_hints(...)` and `cached_replace_hints(kernel, ...)`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _REPLACE_HINTS:
        return call.args[0] if call.func.attr == "cached_replace_hints" and call.args else call.func.value
    if isinstance(call.func, ast.Name) and call.func.id in _REPLACE_HINTS and call.args:
        return call.args[0]
    return None


def _elements(module: "Module", node: ast.expr, at: ast.AST) -> tuple[ast.expr, ...] | None:
    """The elements of a tuple that is written out, added up from such, or returned by a function called in place."""
    values = list(values_of(module, node, at))
    if len(values) != 1:
        return None
    match values[0]:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            if any(isinstance(each, ast.Starred) for each in elements):
                return None
            return tuple(elements)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _elements(module, left, at), _elements(module, right, at)
            return first + second if first is not None and second is not None else None
        case ast.Call(func=function):
            returned = _returned(module, function, at)
            return _elements(module, returned, returned) if returned is not None else None
    return None
