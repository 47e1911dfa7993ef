"""Rules about sizes that can be zero."""

import ast
import functools
from collections.abc import Iterator

from tilewright.rules.definitions import definitions
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.calls import calls
from tilewright.rules.hosts.devices import takes_arguments
from tilewright.rules.hosts.examples import KERNEL
from tilewright.rules.hosts.examples import LAUNCH
from tilewright.rules.hosts.grids import axes
from tilewright.rules.hosts.grids import division
from tilewright.rules.hosts.values import alternatives
from tilewright.rules.hosts.values import is_dimension
from tilewright.rules.hosts.values import resolved
from tilewright.rules.hosts.walking import walk
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module


class EmptyTensor(Rule):
    """Launch over an empty grid where a tensor has no elements."""

    code = "TW308"
    severity = Severity.WARNING
    why = (
        "PyTorch's operators take tensors without elements: an expert without tokens, the last batch of a filter."
        " A grid computed from such a shape has no blocks, and the driver refuses the launch with `invalid "
        "value`."
    )
    advice = "Return before the launch where the result has no elements."
    VALID = (
        KERNEL + "def double(x):\n    y = torch.empty_like(x)\n    if y.numel() == 0:\n        return y\n"
        f"    grid = (ct.cdiv(x.numel(), 1024),)\n    {LAUNCH}\n    return y\n",
        KERNEL + "def double(x):\n    y = torch.empty_like(x)\n    if n := x.numel():\n"
        f"        grid = (ct.cdiv(n, 1024),)\n        {LAUNCH}\n    return y\n",
        KERNEL + "def double(x):\n    y = torch.empty_like(x)\n"
        f"    grid = (max(1, ct.cdiv(x.numel(), 1024)),)\n    {LAUNCH}\n    return y\n",
        KERNEL + "def _launch(x, y):\n"
        f"    grid = (ct.cdiv(x.numel(), 1024),)\n    {LAUNCH}\n\n\n"
        "def double(x):\n    y = torch.empty_like(x)\n    if x.numel():\n        _launch(x, y)\n    return y\n",
    )
    INVALID = (
        KERNEL + "def double(x):\n    y = torch.empty_like(x)\n"
        f"    grid = (ct.cdiv(x.numel(), 1024),)\n    {LAUNCH}\n    return y\n",
        KERNEL + "def double(x):\n    y = torch.empty_like(x)\n    n = x.shape[0]\n"
        f"    grid = ((n + 1023) // 1024, 1, 1)\n    {LAUNCH}\n    return y\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        reported: set[Function] = set()
        for launch in module.launches:
            function = launch.function
            if function is None or function in reported or launch.search or _is_backward(module, function):
                continue
            if not takes_arguments(module, launch.node):
                continue
            for axis, extent in axes(module, launch):
                if not may_be_zero(module, extent) or _is_guarded(module, function):
                    continue
                reported.add(function)
                yield self.finding(
                    module,
                    launch.node.func,
                    f"axis {axis} of the grid, {ast.unparse(extent)}, is 0 for an empty tensor: return "
                    "before the launch",
                )
                break


@functools.lru_cache(maxsize=4096)
def may_be_zero(module: Module, node: ast.expr, depth: int = 8) -> bool:
    """Whether an extent of a grid is certainly 0 for some tensor without elements."""
    if depth == 0:
        return False
    if isinstance(node, ast.Name):
        values = alternatives(module, node)
        if values != (node,):
            return all(may_be_zero(module, each, depth - 1) for each in values)
        return is_dimension(module, node) or _is_passed_zero(module, node, depth)
    found = division(module, node)
    if found is not None and not _at_least_one(node):
        return may_be_zero(module, found.size, depth - 1)
    match node:
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return may_be_zero(module, left, depth - 1) or may_be_zero(module, right, depth - 1)
        case ast.Call(func=ast.Name(id="min"), args=arguments):
            return any(may_be_zero(module, each, depth - 1) for each in arguments)
    return is_dimension(module, node)


def _is_backward(module: Module, function: Function) -> bool:
    """Whether the function computes gradients: an empty tensor ends in the forward pass before."""
    around = [function, *(each for each in module.ancestors(function) if isinstance(each, ast.FunctionDef))]
    return any(word in each.name for each in around for word in ("backward", "bwd"))


def _is_passed_zero(module: Module, node: ast.Name, depth: int) -> bool:
    """Whether a parameter gets a dimension from every call in this module."""
    bindings = definitions(module).reaching(node)
    if len(bindings) != 1 or not bindings[0].parameter:
        return False
    function = module.function_of(bindings[0].node)
    if function is None:
        return False
    passed = list(calls(module).passed(function, node.id))
    return bool(passed) and all(is_dimension(module, each) or may_be_zero(module, each, depth - 1) for each in passed)


def _at_least_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "max"


def _is_guarded(module: Module, function: Function, seen: frozenset[Function] = frozenset()) -> bool:
    """Whether the function, or else everything that calls it, asks whether something is empty."""
    if function in seen or any(_asks_emptiness(module, test) for test in _tests(module, function)):
        return True
    around = calls(module).direct_callers(function)
    return bool(around) and all(_is_guarded(module, each, seen | {function}) for each in around)


def _tests(module: Module, function: Function) -> Iterator[ast.expr]:
    """Conditions that decide whether a function goes on, or what it calls."""
    for node in walk(function):
        if isinstance(node, ast.If):
            leaves = isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
            if leaves or any(_goes_on(module, each) for each in ast.walk(node)):
                yield node.test
        elif isinstance(node, ast.IfExp | ast.While | ast.Assert):
            yield node.test
        elif isinstance(node, ast.comprehension):
            yield from node.ifs


def _goes_on(module: Module, node: ast.AST) -> bool:
    """Whether a node is a launch, or calls a function of the module that may launch."""
    if not isinstance(node, ast.Call):
        return False
    return module.names.tile(node.func) == "launch" or bool(calls(module).called(node))


def _asks_emptiness(module: Module, test: ast.expr) -> bool:
    for node in ast.walk(test):
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=0 | 1 as limit)]):
                bounds = isinstance(op, ast.Lt | ast.GtE) if limit else not isinstance(op, ast.Is | ast.IsNot)
                if bounds and (is_dimension(module, left) or _is_count(module, left)):
                    return True
            case ast.Compare(left=ast.Constant(value=0), ops=[ast.In() | ast.NotIn()]):
                return True
    bare = test.operand if isinstance(test, ast.UnaryOp) else test
    parts = bare.values if isinstance(bare, ast.BoolOp) else [bare]
    return any(is_dimension(module, each.value if isinstance(each, ast.NamedExpr) else each) for each in parts)


def _is_count(module: Module, node: ast.expr) -> bool:
    """Whether what is compared with 0 may be a number of things: a parameter, or something computed."""
    if not isinstance(node, ast.Name):
        return isinstance(node, ast.Call | ast.BinOp)
    return any(
        each.parameter or (each.value is not None and isinstance(resolved(module, each.value), ast.Call | ast.BinOp))
        for each in definitions(module).reaching(node)
    )
