"""Rule about result tensors that the caller passes in."""

import ast
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.calls import calls
from tilewright.rules.hosts.walking import walk
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module

_KERNEL = """
import cuda.tile as ct
import torch

ConstInt = ct.Constant[int]


@ct.kernel
def _double_kernel(X, Y, TILE: ConstInt):
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)) * 2)


def double(x, out=None):
    if x.numel() == 0:
        return x if out is None else out
    x = x.contiguous().view(-1)
    if out is None:
        out = torch.empty_like(x)
"""
_LAUNCH = """    grid = (ct.cdiv(x.numel(), 1024),)
    ct.launch(torch.cuda.current_stream(x.device), grid, _double_kernel, (x, out, 1024))
    return out
"""


class UncheckedOut(Rule):
    """Result tensor of the caller that is not checked."""

    code = "TW312"
    severity = Severity.WARNING
    why = (
        "A kernel stores to whatever it is given. A result tensor of another shape is filled in part or read as "
        "another, and one on another device is an illegal address: neither is an error that says so."
    )
    advice = "Raise ValueError where its shape, dtype or device is not that of the result."
    proof = Proof.NUMBERS
    VALID = (
        _KERNEL + "    elif out.shape != x.shape or out.dtype != x.dtype or out.device != x.device:\n"
        "        raise ValueError('out does not fit')\n" + _LAUNCH,
        _KERNEL + "    for tensor, like in zip((out,), (x,), strict=True):\n"
        "        if tensor.shape != like.shape or tensor.dtype != like.dtype or tensor.device != like.device:\n"
        "            raise ValueError('out does not fit')\n" + _LAUNCH,
        _KERNEL + "    assert out.shape == x.shape and out.dtype == x.dtype and out.device == x.device\n" + _LAUNCH,
    )
    INVALID = (_KERNEL + _LAUNCH,)

    def check(self, module: Module) -> Iterator[Finding]:
        if not module.kernels:
            return
        for function in module.nodes(ast.FunctionDef):
            if any(function is kernel.node for kernel in module.kernels) or not _is_public(module, function):
                continue
            for argument in _optional_results(function):
                if _is_used(function, argument.arg) and not _is_checked(module, function, argument.arg):
                    yield self.finding(
                        module,
                        argument,
                        f"neither shape nor dtype of {argument.arg} is checked before a kernel stores to it: "
                        "raise ValueError",
                    )


def _is_public(module: Module, function: Function) -> bool:
    """Whether callers of the package may pass the tensor: no method, and not private."""
    return not isinstance(module.parent(function), ast.ClassDef) and not function.name.startswith("_")


def _optional_results(function: Function) -> Iterator[ast.arg]:
    """Parameters that are called out and are None unless given."""
    positional = [*function.args.posonlyargs, *function.args.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(function.args.defaults))
    defaults += function.args.defaults
    pairs = [*zip(positional, defaults, strict=True)]
    pairs += zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    for argument, default in pairs:
        named = argument.arg in ("out", "output") or argument.arg.endswith("_out")
        if named and isinstance(default, ast.Constant) and default.value is None:
            yield argument


def _is_used(function: Function, name: str) -> bool:
    """Whether the tensor goes anywhere but into a refusal."""
    return any(
        isinstance(node, ast.Call) and any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))
        for node in walk(function)
    ) and not any(
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and ast.unparse(node.test) == f"{name} is not None"
        and isinstance(node.body[-1], ast.Raise)
        and not _is_nested(function, node)
        for node in walk(function)
    )


def _is_nested(function: Function, node: ast.If) -> bool:
    return node not in function.body


def _is_checked(module: Module, function: Function, name: str, depth: int = 4) -> bool:
    """Whether the function, or one that it passes the tensor to, refuses one of the wrong shape or dtype."""
    names = {name, *_elements(function, name)}
    for node in walk(function):
        tests: list[ast.expr] = []
        if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and _raises(node)):
            tests = [node.test]
        if any(_mentions(test, each) for test in tests for each in names):
            return True
        if isinstance(node, ast.Call) and depth:
            for parameter, called in _receivers(module, node, name):
                if called is not function and _is_checked(module, called, parameter, depth - 1):
                    return True
            called_name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            passes = any(isinstance(each, ast.Name) and each.id == name for each in node.args)
            if passes and any(word in called_name for word in ("check", "valid", "expect")):
                return True
    return False


def _elements(function: Function, name: str) -> Iterator[str]:
    """Variables of loops over a tuple of tensors, alone or beside others: `for tensor, dtype in zip(out, dtypes)`."""
    for node in walk(function):
        if isinstance(node, ast.For) and any(isinstance(e, ast.Name) and e.id == name for e in ast.walk(node.iter)):
            yield from (each.id for each in ast.walk(node.target) if isinstance(each, ast.Name))


def _raises(node: ast.If) -> bool:
    return any(isinstance(each, ast.Raise) for statement in node.body for each in ast.walk(statement))


def _mentions(test: ast.expr, name: str) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ("shape", "dtype", "size", "numel")
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for node in ast.walk(test)
    )


def _receivers(module: Module, call: ast.Call, name: str) -> Iterator[tuple[str, Function]]:
    """Parameters of the module's functions that a call passes a variable for."""
    for function in calls(module).called(call):
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        names = names[1:] if names[:1] in (["ctx"], ["self"], ["cls"]) else names
        for parameter, value in zip(names, call.args, strict=False):
            if isinstance(value, ast.Name) and value.id == name:
                yield parameter, function
        for keyword in call.keywords:
            if keyword.arg and isinstance(keyword.value, ast.Name) and keyword.value.id == name:
                yield keyword.arg, function
