"""Rule about kernels that are made for one dtype."""

import ast
from collections.abc import Iterator

from tilewright.rules.definitions import definitions
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.calls import calls
from tilewright.rules.hosts.values import alternatives
from tilewright.rules.hosts.values import resolved
from tilewright.rules.hosts.walking import walk
from tilewright.rules.kernels import Kernel
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module

_DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")

_LIKE = ("empty_like", "zeros_like")

_EXAMPLE = """
import cuda.tile as ct
import torch

ConstInt = ct.Constant[int]


@ct.kernel
def _double_kernel(X, Y, TILE: ConstInt):
    tx = ct.load(X, (ct.bid(0),), (TILE,)).astype(ct.float32)
    ct.store(Y, (ct.bid(0),), (tx * 2).astype({dtype}))


def double(x):
{check}    y = torch.empty_like(x)
    if n := x.numel():
        ct.launch(torch.cuda.current_stream(x.device), (ct.cdiv(n, 1024),), _double_kernel, (x, y, 1024))
    return y
"""
_CHECK = "    if x.dtype != torch.float16:\n        raise TypeError(f'x is {x.dtype}; it must be float16')\n"


class UncheckedDtype(Rule):
    """Kernel for one dtype, and a host function that takes any."""

    code = "TW323"
    severity = Severity.WARNING
    why = (
        "A kernel that converts its result to a fixed dtype compiles for arrays of this dtype, fails deep in the "
        "compiler for others, and silently rounds where the array is wider."
    )
    advice = "Convert to the dtype of the array (Y.dtype), or raise TypeError for every other dtype."
    proof = Proof.COMPILER
    VALID = (
        _EXAMPLE.format(dtype="Y.dtype", check=""),
        _EXAMPLE.format(dtype="ct.float16", check=_CHECK),
        _EXAMPLE.format(dtype="ct.float16", check="").replace("empty_like(x)", "empty_like(x, dtype=torch.float16)"),
    )
    INVALID = (_EXAMPLE.format(dtype="ct.float16", check=""),)

    def check(self, module: Module) -> Iterator[Finding]:
        for launch in module.launches:
            function = launch.function
            if function is None or launch.search:
                continue
            for kernel in launch.kernels:
                bound = launch.bound(kernel)
                for name, dtype, call in _fixed(kernel):
                    target = bound.get(name)
                    if target is None or not _follows_argument(module, target) or _is_checked(module, function):
                        continue
                    passed = f"{function.name} passes {ast.unparse(target)} of any dtype: convert to {name}.dtype"
                    yield self.finding(module, call, f"{kernel.name} stores {dtype} to {name}, and {passed}")


def _fixed(kernel: Kernel) -> Iterator[tuple[str, str, ast.Call]]:
    """Parameters that a kernel stores a fixed dtype to."""
    module = kernel.module
    for node in walk(kernel.node):
        if not isinstance(node, ast.Call) or module.names.tile(node.func) not in ("store", "scatter"):
            continue
        if len(node.args) < 3 or not isinstance(node.args[0], ast.Name):
            continue
        value = resolved(module, node.args[2])
        dtype: ast.expr | None = None
        match value:
            case ast.Call(func=ast.Attribute(attr="astype"), args=[converted]):
                dtype = converted
            case ast.Call(func=function, args=[_, converted]) if module.names.tile(function) == "astype":
                dtype = converted
        name = (module.names.tile(dtype) or module.names.torch(dtype)) if dtype is not None else None
        if name in _DTYPES:
            yield node.args[0].id, name, node


def _follows_argument(module: Module, node: ast.expr, depth: int = 6) -> bool:
    """Whether a tensor certainly has the dtype of an argument, or is one."""
    for value in alternatives(module, node) if depth else ():
        match value:
            case ast.Name():
                return any(each.parameter for each in definitions(module).reaching(value))
            case ast.Call(func=function, keywords=keywords) if module.names.torch(function) in _LIKE:
                return not any(each.arg == "dtype" for each in keywords)
            case ast.Call(func=function, keywords=keywords) if module.names.torch(function) in ("empty", "zeros"):
                return any(
                    each.arg == "dtype" and isinstance(each.value, ast.Attribute) and each.value.attr == "dtype"
                    for each in keywords
                )
            case ast.Call(func=ast.Attribute(value=owner, attr="view" | "reshape" | "contiguous")):
                return _follows_argument(module, owner, depth - 1)
    return False


def _is_checked(module: Module, function: Function) -> bool:
    """Whether the function, or one that calls it, refuses or tells apart dtypes."""
    for each in calls(module).callers(function):
        for node in walk(each):
            test = node.test if isinstance(node, ast.If | ast.IfExp | ast.Assert) else None
            if test is not None and "dtype" in ast.unparse(test):
                return True
    return False
