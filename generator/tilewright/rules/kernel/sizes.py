"""Sizes of tiles: constants, and powers of two."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.hosts.values import is_dimension
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.kernel_rule import tile_alias
from tilewright.rules.rule import Proof
from tilewright.rules.source import Module
from tilewright.rules.symbols import Polynomial
from tilewright.rules.values import Scalar
from tilewright.rules.values import Sequence
from tilewright.rules.values import Value

_ARGUMENTS = {
    "load": "shape",
    "full": "shape",
    "zeros": "shape",
    "ones": "shape",
    "arange": "size",
    "reshape": "shape",
    "broadcast_to": "shape",
    "extract": "shape",
}


def _sizes(flow: Flow) -> Iterator[tuple[Operation, Scalar, ast.expr]]:
    """Every size of a tile that a kernel asks for, with the expression that gives it."""
    for operation in flow.named(*_ARGUMENTS):
        value = operation.value(_ARGUMENTS[operation.name])
        node = operation.nodes.get(_ARGUMENTS[operation.name])
        items: tuple[Value, ...] = value.items if isinstance(value, Sequence) else (value,)
        for place, item in enumerate(items):
            if isinstance(item, Scalar) and node is not None:
                written = isinstance(node, ast.Tuple) and len(node.elts) == len(items)
                yield operation, item, node.elts[place] if written else node  # type: ignore[attr-defined]


class NoPowerOfTwo(KernelRule):
    """A size of a tile is no power of two."""

    code = "TW220"
    severity = Severity.ERROR
    why = (
        "Every axis of every tile has a power of two of elements. Where the host passes the length of a tensor as it "
        "is, the kernel compiles for some lengths and not for others."
    )
    advice = "Round up on the host, `1 << (n - 1).bit_length()`, and mask what lies outside."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), ct.sum(tile, 1, keepdims=True).astype(Y.dtype))


def row_sum(x, out):
    tile = 1 << (x.shape[1] - 1).bit_length()
    ct.launch(torch.cuda.current_stream(), (x.shape[0],), row_sum_kernel, (x, out, tile))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, N: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N)."""
    tile = ct.load(X, (ct.bid(0), 0), (1, N), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), ct.sum(tile, 1, keepdims=True).astype(Y.dtype))


def row_sum(x, out):
    ct.launch(torch.cuda.current_stream(), (x.shape[0],), row_sum_kernel, (x, out, x.shape[1]))
''',
        HEAD
        + '''@ct.kernel
def copy_rows_kernel(X, Y, N: ct.Constant[int]):
    """Y (M, N) = X (M, N)."""
    ct.store(Y, (ct.bid(0), 0), ct.load(X, (ct.bid(0), 0), (1, N)))


def copy_rows(x, out):
    ct.launch(torch.cuda.current_stream(), (x.shape[0],), copy_rows_kernel, (x, out, min(x.shape[1], 1024)))
''',
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y):
    """Y (N,) = X (N,)."""
    tile = ct.load(X, (ct.bid(0),), (100,))
    ct.store(Y, (ct.bid(0),), tile)
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Sizes that are written so, and constants that the host fills with a length."""
        for operation, size, node in _sizes(flow):
            number = size.number.number if size.number is not None else None
            if number is not None and number & (number - 1) and number > 0:
                message = f"{number} is no power of two, as every axis of a tile must be"
                yield self.finding(flow.module, node, message)
            parameter = _parameter(size.number)
            if parameter is None or operation.name in ("reshape", "broadcast_to", "extract"):
                continue
            given = flow.launches.given(parameter)
            lengths = [each for each in given if _may_be_length(flow.module, each)]
            if lengths and len(lengths) == len(given) and not flow.launches.is_restricted(parameter):
                message = (
                    f"{parameter}, the size of a tile, is {ast.unparse(lengths[0])} as the host passes it: the kernel "
                    "compiles only where that is a power of two; round up"
                )
                declared = next(each.node for each in flow.kernel.parameters if each.name == parameter)
                yield self.finding(flow.module, declared, message, severity=Severity.WARNING)


def _may_be_length(module: Module, node: ast.expr) -> bool:
    """Whether the host passes the length of a tensor as it is, perhaps only where that is below a limit."""
    match node:
        case ast.Call(func=ast.Name(id="min"), args=arguments):
            return any(is_dimension(module, each) for each in arguments)
    return is_dimension(module, node)


def _parameter(number: Polynomial | None) -> str | None:
    atom = number.atom if number is not None else None
    return str(atom.key[0]) if atom is not None and atom.kind == "parameter" and len(atom.key) == 1 else None


class NoConstant(KernelRule):
    """A size of a tile is no constant."""

    code = "TW221"
    severity = Severity.ERROR
    why = (
        "The size of a tile must be known when the kernel is compiled. A parameter without `ct.Constant`, `B: int` "
        'too, and the length of an array are not; the compiler says "Expected a constant integer tuple".'
    )
    advice = "Annotate the parameter with `ct.Constant[int]`."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: int):
    """Y (N,) = X (N,)."""
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)))
''',
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y):
    """Y (M, 1) = sums of the rows of X (M, N)."""
    tile = ct.load(X, (ct.bid(0), 0), (1, X.shape[1]))
    ct.store(Y, (ct.bid(0), 0), ct.sum(tile, 1, keepdims=True).astype(Y.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Sizes that depend on what is known at run time only."""
        for operation, size, node in _sizes(flow):
            if size.constant or size.number is None or operation.name == "broadcast_to":
                continue
            parameter = _parameter(size.number)
            if parameter is not None:
                message = f"{parameter} is no constant, and cannot be the size of a tile: annotate it with ct.Constant"
                yield self.finding(flow.module, node, message, fix=_annotated(flow, parameter))
            elif size.number.has("bid", "blocks") or _is_length(flow, size.number):
                yield self.finding(
                    flow.module,
                    node,
                    f"`{ast.unparse(node)}` is known at run time only: the size of a tile is a constant",
                )


def _is_length(flow: Flow, number: Polynomial) -> bool:
    """Whether it is the length of an array whose annotation does not make it a constant."""
    for atom in number.atoms():
        if atom.kind == "dimension":
            parameter = next((each for each in flow.kernel.parameters if each.name == atom.key[0]), None)
            return parameter is not None and parameter.node.annotation is None
    return False


def _annotated(flow: Flow, parameter: str) -> Fix | None:
    argument = next((each.node for each in flow.kernel.parameters if each.name == parameter), None)
    alias = tile_alias(flow.module)
    if argument is None or alias is None:
        return None
    text = f"{parameter}: {alias}Constant[int]"
    return Fix(f"Declare {text}", (flow.module.replacement(argument, text),))
