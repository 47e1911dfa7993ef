"""Launches of kernels: which kernel, over which grid, with which arguments for which parameters."""

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.rules.definitions import values_of
from tilewright.rules.kernels import Kernel

if TYPE_CHECKING:
    from tilewright.rules.source import Module

_DEPTH = 6  # sources of a kernel, or parts of a tuple, that lead to one another
_SEARCH = ("configs", "stream", "grid_fn", "kernel", "args_fn", "hints_fn")


@dataclass(frozen=True, eq=False)
class Launch:
    """One `ct.launch`, or one `exhaustive_search`, whose grid and arguments are what its functions return."""

    node: ast.Call
    function: ast.FunctionDef | ast.AsyncFunctionDef | None  # around the call
    stream: ast.expr | None
    grid: ast.expr | None
    kernel: ast.expr | None  # as written
    kernels: tuple[Kernel, ...]  # every kernel of this module that it may be; empty where one cannot be told
    written: tuple[ast.expr, ...] | None  # elements of the tuple, some perhaps starred; None where it cannot be told
    search: bool = False  # for autotuning

    @property
    def arguments(self) -> tuple[ast.expr, ...] | None:
        """What is passed, one for each parameter; None where the tuple cannot be told, or has starred parts."""
        starred = self.written is None or any(isinstance(each, ast.Starred) for each in self.written)
        return None if starred else self.written

    def bound(self, kernel: Kernel) -> dict[str, ast.expr]:
        """What is passed for each parameter, as far as it can be told; nothing where the number is wrong.

        Of a tuple with starred parts that is what stands before the first and behind the last of them.
        """
        names = [each.name for each in kernel.parameters]
        written = self.written or ()
        starred = [place for place, each in enumerate(written) if isinstance(each, ast.Starred)]
        if not starred:
            return dict(zip(names, written, strict=True)) if len(names) == len(written) else {}
        if len(written) - len(starred) > len(names):
            return {}
        last = written[starred[-1] + 1 :]
        return dict(zip(names, written[: starred[0]], strict=False)) | dict(zip(names[::-1], last[::-1], strict=False))


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
    kernels = _kernels(module, kernel, node) if kernel is not None else ()
    elements = _elements(module, arguments, node) if arguments is not None else None
    # Where it may be one of several, as from one cache for all, it is one that takes so many arguments.
    whole = elements is not None and not any(isinstance(each, ast.Starred) for each in elements)
    fitting = tuple(each for each in kernels if whole and elements and len(each.parameters) == len(elements))
    return Launch(
        node=node,
        function=module.function_of(node),
        stream=given["stream"],
        grid=grid,
        kernel=kernel,
        kernels=fitting or kernels,
        written=elements,
        search=search,
    )


def _given(call: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr | None]:
    given: dict[str, ast.expr | None] = dict.fromkeys(names)
    if not any(isinstance(each, ast.Starred) for each in call.args):
        given |= dict(zip(names, call.args, strict=False))
    return given | {each.arg: each.value for each in call.keywords if each.arg in names}


def _returned(module: "Module", function: ast.expr | None, at: ast.AST) -> ast.expr | None:
    """What a lambda, or a function of one return, gives back."""
    if isinstance(function, ast.Name):
        definition = module.function_named(function.id, at)
        if definition is not None:
            returns = [node for node in ast.walk(definition) if isinstance(node, ast.Return)]
            return returns[0].value if len(returns) == 1 else None
        values = values_of(module, function, at)
        function = values[0] if len(values) == 1 else None
    return function.body if isinstance(function, ast.Lambda) else None


def _kernels(module: "Module", node: ast.expr, at: ast.AST, depth: int = _DEPTH) -> tuple[Kernel, ...]:
    found: list[Kernel] = []
    for value in values_of(module, node, at) if depth else ():
        sources = _sources(module, value)
        candidates = tuple(kernel for part in sources for kernel in _kernels(module, part, at, depth - 1))
        if isinstance(value, ast.Name):
            candidates = tuple(kernel for kernel in module.kernels if kernel.name == value.id)
        if not candidates:
            return ()
        found += candidates
    return tuple(dict.fromkeys(found))


def _sources(module: "Module", value: ast.expr) -> list[ast.expr]:
    """Expressions from which a kernel that is no name comes."""
    match value:
        case ast.Call(func=ast.Name(id=name)) if name in module.functions:
            returns = (node for node in ast.walk(module.functions[name]) if isinstance(node, ast.Return))
            return [node.value for node in returns if node.value is not None]
        case ast.Call():
            unhinted = _unhinted(module, value)
            return [unhinted] if unhinted is not None else []
        case ast.Subscript(value=ast.Call(func=ast.Name(id=name)), slice=ast.Constant(value=int(position))) if (
            name in module.functions
        ):
            returns = (node for node in ast.walk(module.functions[name]) if isinstance(node, ast.Return))
            given = [node.value.elts for node in returns if isinstance(node.value, ast.Tuple)]
            return [elements[position] for elements in given if position < len(elements)]
        case ast.Subscript(value=ast.Subscript(value=ast.Name(id=cache)), slice=ast.Constant(value=int(position))):
            put = [each.elts for each in _put_in(module, cache) if isinstance(each, ast.Tuple)]
            return [elements[position] for elements in put if position < len(elements)]
        case ast.Subscript(value=ast.Name(id=cache)):
            return _put_in(module, cache)
    return []


def _put_in(module: "Module", cache: str) -> list[ast.expr]:
    """All that is put in a cache, as by `CACHE[key] = (config, kernel)`, or written as `CACHE = {key: kernel}`."""
    found: list[ast.expr] = []
    for node in module.nodes(ast.Assign):
        match node:
            case ast.Assign(targets=[ast.Name(id=bound)], value=ast.Dict(values=values)) if bound == cache:
                found += values
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=bound))], value=value) if bound == cache:
                found.append(value)
    return found


def _unhinted(module: "Module", call: ast.Call) -> ast.expr | None:
    """The kernel in `kernel.replace_hints(...)`, `cached_replace_hints(kernel, ...)`, `ct.kernel(kernel._pyfunc)`."""
    match call:
        case ast.Call(func=ast.Attribute(value=kernel, attr="replace_hints")):
            return kernel
        case ast.Call(
            func=ast.Name(id="cached_replace_hints") | ast.Attribute(attr="cached_replace_hints"), args=[kernel, *_]
        ):
            return kernel
        case ast.Call(args=[ast.Attribute(value=kernel, attr="_pyfunc"), *_]) if (
            module.names.tile(call.func) == "kernel"
        ):
            return kernel
    return None


def _elements(module: "Module", node: ast.expr, at: ast.AST, depth: int = _DEPTH) -> tuple[ast.expr, ...] | None:
    """The elements of a tuple that is written out, added up from such, or returned by a function called in place.

    What a starred element stands for is put in its place where it can be told.
    """
    values = values_of(module, node, at) if depth else []
    if len(values) != 1:
        return None
    match values[0]:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return tuple(part for each in elements for part in _unstarred(module, each, at, depth))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = (_elements(module, each, at, depth - 1) for each in (left, right))
            return first + second if first is not None and second is not None else None
        case ast.Call(func=function):
            returned = _returned(module, function, at)
            return _elements(module, returned, at, depth - 1) if returned is not None else None
    return None


def _unstarred(module: "Module", node: ast.expr, at: ast.AST, depth: int) -> tuple[ast.expr, ...]:
    elements = _elements(module, node.value, at, depth - 1) if isinstance(node, ast.Starred) else None
    return (node,) if elements is None else elements
