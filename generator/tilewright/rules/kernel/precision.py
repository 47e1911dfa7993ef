"""Sums, products and functions that are computed in half precision."""

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.dtypes import HALF
from tilewright.rules.dtypes import of_array
from tilewright.rules.elementwise import TRANSCENDENTAL
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.kernel_rule import is_only_compared
from tilewright.rules.kernel_rule import tile_alias
from tilewright.rules.rule import Proof
from tilewright.rules.values import Scalar
from tilewright.rules.values import Tile
from tilewright.rules.values import Value

_HALF_WORDS = re.compile(r"\b(b?float16|bf16|fp16|half)\b")
_WIDE = re.compile(r"\.(float32|float64|float|double|u?int\d+|int|long|short|bool)$")


def _half(flow: Flow, value: Value, *, stored: bool = True) -> str | None:
    """How a dtype that is, or may be, half precision is said.

    With `stored` that of an array counts only where the kernel also stores values of that dtype, or computes with them
    and values of another array alike: then it is one of the operands, and no table of statistics, which are kept in
    float32.
    """
    dtype = value.dtype if isinstance(value, Tile | Scalar) else None
    if dtype in HALF:
        return dtype
    array = of_array(dtype)
    known = flow.launches.dtypes(array) if array else None
    if known and all(_WIDE.search(each) for each in known):
        return None
    return f"the dtype of {array}" if array and (not stored or _is_operand(flow, dtype)) else None


def _severity(flow: Flow, value: Value) -> Severity:
    """A warning where the value is of half precision, or the file says that its tensors may be."""
    known = isinstance(value, Tile | Scalar) and value.dtype in HALF
    return Severity.WARNING if known or _HALF_WORDS.search(flow.module.text) else Severity.INFO


def _is_operand(flow: Flow, dtype: str | None) -> bool:
    return _is_stored(flow, dtype) or _meets_another(flow, dtype)


def _meets_another(flow: Flow, dtype: str | None) -> bool:
    """Whether a value of a dtype is added to, or subtracted from, one of another array's that was not converted."""
    for each in flow.named("add", "sub"):
        dtypes = {x.dtype for x in (each.value("x"), each.value("y")) if isinstance(x, Tile)}
        if len(dtypes) == 2 and dtype in dtypes and all(map(of_array, dtypes)):
            return True
    return False


def _is_stored(flow: Flow, dtype: str | None) -> bool:
    """Whether a value of a dtype is stored, or converted from it to that of an array after it was computed with."""
    values = [each.value("tile" if each.name == "store" else "value") for each in flow.named("store", "scatter")]
    for each in flow.named("astype"):
        x, target = each.value("x"), each.result
        if isinstance(x, Tile) and x.array is None and isinstance(target, Tile) and of_array(target.dtype):
            values.append(x)
    return any(isinstance(each, Tile | Scalar) and each.dtype == dtype for each in values)


def _widened(flow: Flow, operation: Operation, parameter: str = "x") -> Fix | None:
    """Convert one argument to float32 first; only for a name, an attribute or a call, which need no parentheses."""
    node = operation.nodes.get(parameter)
    prefix = tile_alias(flow.module)
    if prefix is None or not isinstance(node, ast.Name | ast.Call | ast.Subscript | ast.Attribute):
        return None
    end = flow.module.span(node)
    text = f".astype({prefix}float32)"
    return Fix("Compute in float32", (flow.module.insertion(end.end_line, end.end_column, text),))


_HALVES = ", which loses digits in half precision"


class HalfPrecisionSum(KernelRule):
    """A sum or product over many elements in half precision."""

    code = "TW230"
    severity = Severity.WARNING
    why = (
        "`ct.sum` adds in the dtype of its operand: in float16 a sum beyond 65504 is inf, and in both half dtypes "
        "each addition rounds to three digits."
    )
    advice = "Convert before the reduction, `ct.sum(x.astype(ct.float32), 1)`, and back before the store."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), ct.sum(tile, 1, keepdims=True).astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N) of float16, where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float16)
    ct.store(Y, (ct.bid(0), 0), ct.sum(tile, 1, keepdims=True).astype(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N)."""
    total = ct.zeros((1, TILE), ct.float16)
    for j in range(ct.cdiv(X.shape[1], TILE)):
        total = total + ct.load(X, (ct.bid(0), j), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float16)
    ct.store(Y, (ct.bid(0), 0), ct.sum(total.astype(ct.float32), 1, keepdims=True).astype(Y.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Reductions of tiles that are of half precision, or of an array's dtype, and sums carried by loops."""
        for operation in flow.named("sum", "prod", "cumsum", "cumprod"):
            dtype = _half(flow, operation.value("x"))
            if dtype is not None and not is_only_compared(flow, operation):
                message = f"ct.{operation.name} adds in {dtype}{_HALVES}: convert to float32 first"
                if operation.name in ("prod", "cumprod"):
                    message = f"ct.{operation.name} multiplies in {dtype}{_HALVES}: convert to float32 first"
                severity = _severity(flow, operation.value("x"))
                fix = _widened(flow, operation)
                yield self.finding(flow.module, operation.node, message, fix=fix, severity=severity)
        for carry in flow.carries:
            before = carry.before
            if isinstance(before, Tile) and before.dtype in HALF and before.number == 0 and before.start is not None:
                loop = f"the loop in line {carry.loop.lineno}"
                message = f"{carry.name} is summed in {before.dtype} over {loop}{_HALVES}: start in float32"
                yield self.finding(flow.module, before.start, message)


class HalfPrecisionProduct(KernelRule):
    """A product of matrices with an accumulator in half precision."""

    code = "TW231"
    severity = Severity.WARNING
    why = (
        "`ct.matmul` and `@` give, and add up in, the dtype of their operands: float16 for float16, int8 for int8. "
        "With 4096 products the error is a hundred times that of an accumulator in float32."
    )
    advice = "Use `acc = ct.mma(a, b, acc)` with `acc = ct.zeros(shape, ct.float32)`, for integers with ct.int32."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def product_kernel(A, B, C, TILE: ct.Constant[int]):
    """C (TILE, TILE) = A (TILE, TILE) of float16 @ B (TILE, TILE) of float16."""
    a, b = ct.load(A, (0, 0), (TILE, TILE)), ct.load(B, (0, 0), (TILE, TILE))
    acc = ct.mma(a, b, ct.zeros((TILE, TILE), ct.float32))
    ct.store(C, (0, 0), acc.astype(C.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def product_kernel(A, B, C, TILE: ct.Constant[int]):
    """C (TILE, TILE) = A (TILE, TILE) of float16 @ B (TILE, TILE) of float16."""
    a, b = ct.load(A, (0, 0), (TILE, TILE)), ct.load(B, (0, 0), (TILE, TILE))
    ct.store(C, (0, 0), (a @ b).astype(C.dtype))
''',
        HEAD
        + '''@ct.kernel
def product_kernel(A, B, C, TILE: ct.Constant[int]):
    """C (TILE, TILE) = A (TILE, TILE) of float16 @ B (TILE, TILE) of float16."""
    a, b = ct.load(A, (0, 0), (TILE, TILE)), ct.load(B, (0, 0), (TILE, TILE))
    acc = ct.mma(a, b, ct.zeros((TILE, TILE), ct.float16))
    ct.store(C, (0, 0), acc.astype(C.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """`matmul` on what may be half precision, and accumulators that are."""
        for operation in flow.named("matmul"):
            operands = (operation.value("x"), operation.value("y"))
            found = [dtype for each in operands if (dtype := _half(flow, each, stored=False))]
            if len(found) == 2:
                how = "@" if isinstance(operation.node, ast.BinOp) else "ct.matmul"
                message = f"{how} adds up in {found[0]}{_HALVES}: use ct.mma with float32"
                severity = _severity(flow, operation.value("x"))
                yield self.finding(flow.module, operation.node, message, severity=severity)
        for operation in flow.named("mma"):
            acc = operation.value("acc")
            if isinstance(acc, Tile) and acc.dtype in HALF:
                message = f"the accumulator of ct.mma is {acc.dtype}, which loses digits: make it float32"
                yield self.finding(flow.module, operation.nodes["acc"], message)


class HalfPrecisionFunction(KernelRule):
    """A transcendental function in half precision."""

    code = "TW232"
    severity = Severity.WARNING
    why = (
        "`ct.exp`, `ct.log` and the like compute in the dtype of their operand: in half precision the result has "
        "three digits at most, and `exp` of more than 11 is inf in float16."
    )
    advice = "Convert first, `ct.exp(x.astype(ct.float32))`, and back before the store."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def softplus_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) of float16 = log(1 + exp(x)) of X (N,) of float16."""
    tile = ct.load(X, (ct.bid(0),), (TILE,)).astype(ct.float32)
    ct.store(Y, (ct.bid(0),), ct.log(1.0 + ct.exp(tile)).astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def softplus_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) of float16 = log(1 + exp(x)) of X (N,) of float16."""
    tile = ct.load(X, (ct.bid(0),), (TILE,))
    ct.store(Y, (ct.bid(0),), ct.log(1.0 + ct.exp(tile)))
''',
        HEAD
        + '''@ct.kernel
def softplus_add_kernel(X, Z, Y, TILE: ct.Constant[int]):
    """Y (N,) of float16 = log(1 + exp(x)) + z of X (N,) of float16 and Z (N,) of float16."""
    x, z = ct.load(X, (ct.bid(0),), (TILE,)), ct.load(Z, (ct.bid(0),), (TILE,))
    ct.store(Y, (ct.bid(0),), (ct.log(1.0 + ct.exp(x)) + z).astype(Y.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Functions of tiles that are, or are loaded from what may be, half precision."""
        for operation in flow.named(*(TRANSCENDENTAL - {"pow"})):
            value = operation.value("x1" if operation.name == "atan2" else "x")
            dtype = _half(flow, value)
            if dtype is not None:
                message = f"ct.{operation.name} computes in {dtype}{_HALVES}: convert to float32 first"
                fix, severity = _widened(flow, operation), _severity(flow, value)
                yield self.finding(flow.module, operation.node, message, fix=fix, severity=severity)
