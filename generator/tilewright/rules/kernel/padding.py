"""Elements beyond the end of an array that reach a reduction, a scan or a matrix product."""

import ast
import math
import re
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.kernel_rule import given
from tilewright.rules.kernel_rule import is_only_compared
from tilewright.rules.kernel_rule import tile_prefix
from tilewright.rules.rule import Proof
from tilewright.rules.shapes import reduced
from tilewright.rules.values import Array
from tilewright.rules.values import Named
from tilewright.rules.values import Outside
from tilewright.rules.values import Padding
from tilewright.rules.values import Scalar
from tilewright.rules.values import Tile

_NEUTRAL = {"sum": 0.0, "cumsum": 0.0, "prod": 1.0, "cumprod": 1.0, "max": -math.inf, "min": math.inf}
_NEUTRAL |= {"argmax": -math.inf, "argmin": math.inf}
_INTEGER_ONLY = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_lshift", "bitwise_rshift", "bitwise_not")
_INTEGER_DTYPE = re.compile(r"\btorch\.(u?int\d+|long|int|short)\b")
_MODES = {0.0: "ZERO", -math.inf: "NEG_INF", math.inf: "POS_INF"}


def _reached(operation: Operation) -> Iterator[tuple[Padding, Tile]]:
    """Padding along the axes that an operation reduces, scans or contracts, with the operand that has it."""
    x = operation.value("x")
    if operation.name in ("mma", "matmul"):
        y = operation.value("y")
        for operand, place in ((x, -1), (y, -2)):
            if isinstance(operand, Tile) and (operand.rank or 0) >= 2 and isinstance(operand.axes[place], Padding):
                yield operand.axes[place], operand  # type: ignore[misc]
    elif operation.name in _NEUTRAL and isinstance(x, Tile):
        for place in _places(operation, x):
            outside = x.axes[place]
            if isinstance(outside, Padding):
                yield outside, x


def _places(operation: Operation, x: Tile) -> tuple[int, ...]:
    if operation.name in ("cumsum", "cumprod"):
        return ()  # what lies outside comes after everything that is kept, unless reversed
    found = reduced(x, operation.values.get("axis"), keepdims=False)
    return found[1] if found else ()


def _said(number: float) -> str:
    return {0.0: "zeros", -math.inf: "-inf", math.inf: "inf"}.get(
        number, "NaN" if math.isnan(number) else f"{number:g}"
    )


class UndeterminedPadding(KernelRule):
    """Undetermined padding reaches a reduction or a matrix product."""

    code = "TW210"
    severity = Severity.ERROR
    why = (
        "A tile that hangs over the end of its array is filled with whatever the hardware left there, unless "
        "`padding_mode` says otherwise: now and then a sum, a maximum or a product of matrices is wrong, or NaN. "
        "Zero times NaN is NaN, so a mask on the other operand of a product does not help."
    )
    advice = "Pass `padding_mode=ct.PaddingMode.ZERO`, or what the reduction does not notice: NEG_INF before a maximum."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N)."""
    total = ct.zeros((1, TILE), ct.float32)
    for j in range(ct.cdiv(X.shape[1], TILE)):
        total = total + ct.load(X, (ct.bid(0), j), (1, TILE), padding_mode=ct.PaddingMode.ZERO)
    ct.store(Y, (ct.bid(0), 0), ct.sum(total, 1, keepdims=True).astype(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def matmul_kernel(A, B, C, TILE: ct.Constant[int]):
    """C (M, N) = A (M, K) @ B (K, N)."""
    m, n = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TILE, TILE), ct.float32)
    for k in range(ct.num_tiles(A, 1, (TILE, TILE))):
        a = ct.load(A, (m, k), (TILE, TILE), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, (k, n), (TILE, TILE), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, (m, n), acc.astype(C.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N)."""
    total = ct.zeros((1, TILE), ct.float32)
    for j in range(ct.cdiv(X.shape[1], TILE)):
        total = total + ct.load(X, (ct.bid(0), j), (1, TILE))
    ct.store(Y, (ct.bid(0), 0), ct.sum(total, 1, keepdims=True).astype(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def matmul_kernel(A, B, C, TILE: ct.Constant[int]):
    """C (M, N) = A (M, K) @ B (K, N)."""
    m, n = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TILE, TILE), ct.float32)
    for k in range(ct.num_tiles(A, 1, (TILE, TILE))):
        a = ct.load(A, (m, k), (TILE, TILE), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, (k, n), (TILE, TILE))
        acc = ct.mma(a, b, acc)
    ct.store(C, (m, n), acc.astype(C.dtype))
''',
        HEAD
        + '''def next_power_of_2(n):
    return 1 << (n - 1).bit_length()


@ct.kernel
def row_max_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = the largest element of each row of X (M, N)."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE))
    ct.store(Y, (ct.bid(0), 0), ct.max(tile, 1, keepdims=True))


def row_max(x, out):
    ct.launch(torch.cuda.current_stream(), (x.shape[0],), row_max_kernel, (x, out, next_power_of_2(x.shape[1])))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Where such a value is reduced; the finding is at the load."""
        for operation in flow.named(*_NEUTRAL, "mma", "matmul"):
            for padding, _ in _reached(operation):
                if padding.kind is not Outside.ANYTHING or given(padding.load, "padding_mode") is not None:
                    continue
                line = operation.node.lineno
                message = (
                    f"the tile of {padding.array} may hang over its end ({padding.why}); what lies there is "
                    f"undetermined, and reaches ct.{operation.name} in line {line}"
                )
                yield self.finding(flow.module, padding.load, message, fix=self._fix(flow, padding, operation))

    def _fix(self, flow: Flow, padding: Padding, operation: Operation) -> Fix | None:
        prefix = tile_prefix(padding.load)
        x = operation.value("x")
        direct = isinstance(x, Tile) and x.array is not None
        if prefix is None or (operation.name in ("min", "max", "argmin", "argmax") and not direct):
            return None
        mode = _MODES.get(_NEUTRAL.get(operation.name, 0.0), "ZERO")
        if operation.name in ("prod", "cumprod"):
            return None
        text = f"padding_mode={prefix}PaddingMode.{mode}"
        return Fix(f"Add {text}", (flow.module.added_argument(padding.load, text),))


class WrongPadding(KernelRule):
    """Padding that the reduction notices."""

    code = "TW211"
    severity = Severity.ERROR
    why = (
        "What lies beyond the end of the array takes part in the reduction: zeros win a maximum of negative numbers, "
        "and -inf makes a sum or a product of matrices -inf or NaN."
    )
    advice = (
        "Use padding that changes nothing: ZERO for sums and products, NEG_INF for a maximum, POS_INF for a minimum."
    )
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_max_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = the largest element of each row of X (M, N)."""
    top = ct.full((1, TILE), float("-inf"), ct.float32)
    for j in range(ct.cdiv(X.shape[1], TILE)):
        top = ct.maximum(top, ct.load(X, (ct.bid(0), j), (1, TILE), padding_mode=ct.PaddingMode.NEG_INF))
    ct.store(Y, (ct.bid(0), 0), ct.max(top, 1, keepdims=True).astype(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def row_size_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = the largest absolute value of each row of X (M, N)."""
    top = ct.zeros((1, TILE), ct.float32)
    for j in range(ct.cdiv(X.shape[1], TILE)):
        tile = ct.load(X, (ct.bid(0), j), (1, TILE), padding_mode=ct.PaddingMode.ZERO)
        top = ct.maximum(top, ct.abs(tile))
    ct.store(Y, (ct.bid(0), 0), ct.max(top, 1, keepdims=True).astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_max_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = the largest element of each row of X (M, N)."""
    top = ct.full((1, 1), float("-inf"), ct.float32)
    for j in range(ct.cdiv(X.shape[1], TILE)):
        tile = ct.load(X, (ct.bid(0), j), (1, TILE), padding_mode=ct.PaddingMode.ZERO)
        top = ct.maximum(top, ct.max(tile, 1, keepdims=True))
    ct.store(Y, (ct.bid(0), 0), top.astype(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N)."""
    total = ct.zeros((1, TILE), ct.float32)
    for j in range(ct.cdiv(X.shape[1], TILE)):
        total = total + ct.load(X, (ct.bid(0), j), (1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
    ct.store(Y, (ct.bid(0), 0), ct.sum(total, 1, keepdims=True).astype(Y.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Where padding other than the neutral element is reduced; the finding is at the reduction."""
        for operation in flow.named(*_NEUTRAL, "mma", "matmul"):
            for padding, operand in _reached(operation):
                neutral = _NEUTRAL.get(operation.name, 0.0)
                if padding.kind is not Outside.NUMBER or padding.number == neutral:
                    continue
                if operation.name == "sum" and (math.isfinite(padding.number) or is_only_compared(flow, operation)):
                    continue  # zeros that were computed with are another rule's
                if operation.name in ("max", "argmax") and operand.positive and padding.number <= 0:
                    continue
                if operation.name in ("mma", "matmul") and math.isfinite(padding.number):
                    continue  # the other operand may be zero there
                if operation.name in ("max", "argmax", "min", "argmin") and abs(padding.number) >= 1e4:
                    lowest = padding.number < 0
                    if lowest == (operation.name in ("max", "argmax")):
                        continue  # a large number in place of inf
                message = (
                    f"beyond the end of {padding.array} ({padding.why}) lie {_said(padding.number)}, which "
                    f"ct.{operation.name} does not leave out"
                )
                yield self.finding(flow.module, operation.node, message)


class PaddingNoLongerZero(KernelRule):
    """Padding is changed before it is summed."""

    code = "TW212"
    severity = Severity.ERROR
    why = (
        "Zeros beyond the end of the array add nothing to a sum, but what is computed from them does: exp(0 - m) for "
        "each missing element of a softmax, mean * mean for each of a variance."
    )
    advice = "Set these elements to zero right before the sum: `ct.where(ct.arange(TILE, dtype=ct.int32) < n, x, 0.0)`."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def variance_kernel(X, Y, N: ct.Constant[int], TILE: ct.Constant[int]):
    """Y (M, 1) = variances of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    mean = ct.sum(tile, 1, keepdims=True) / N
    inside = ct.arange(TILE, dtype=ct.int32)[None, :] < N
    centered = ct.where(inside, tile - mean, 0.0)
    ct.store(Y, (ct.bid(0), 0), (ct.sum(centered * centered, 1, keepdims=True) / N).astype(Y.dtype))


def variance(x, out):
    n = x.shape[1]
    tile = 1 << (n - 1).bit_length()
    ct.launch(torch.cuda.current_stream(), (x.shape[0],), variance_kernel, (x, out, n, tile))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def variance_kernel(X, Y, N: ct.Constant[int], TILE: ct.Constant[int]):
    """Y (M, 1) = variances of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    mean = ct.sum(tile, 1, keepdims=True) / N
    centered = tile - mean
    ct.store(Y, (ct.bid(0), 0), (ct.sum(centered * centered, 1, keepdims=True) / N).astype(Y.dtype))


def variance(x, out):
    n = x.shape[1]
    tile = 1 << (n - 1).bit_length()
    ct.launch(torch.cuda.current_stream(), (x.shape[0],), variance_kernel, (x, out, n, tile))
''',
        HEAD
        + '''@ct.kernel
def exp_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the exponentials of the rows of X (M, N)."""
    total = ct.zeros((1, TILE), ct.float32)
    for j in range(ct.cdiv(X.shape[1], TILE)):
        tile = ct.load(X, (ct.bid(0), j), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        total = total + ct.exp(tile)
    ct.store(Y, (ct.bid(0), 0), ct.sum(total, 1, keepdims=True).astype(Y.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Where padding that was computed with is summed; the finding is at the sum."""
        for operation in flow.named("sum"):
            for padding, _ in _reached(operation):
                changed = padding.kind is Outside.NUMBER and padding.number != 0 and math.isfinite(padding.number)
                if padding.kind is not Outside.COMPUTED and not changed:
                    continue
                message = (
                    f"beyond the end of {padding.array} ({padding.why}) the elements are no longer zero, "
                    "and this sum counts them"
                )
                yield self.finding(flow.module, operation.node, message)


class WrongDivisor(KernelRule):
    """A mean divides by the size of the tile."""

    code = "TW213"
    severity = Severity.ERROR
    why = "The tile is larger than the row, so a mean over its elements has to divide by the length of the row."
    advice = "Divide by the number of elements, as in `ct.sum(x, 1, keepdims=True) / X.shape[1]`."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def mean_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = means of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), (ct.sum(tile, 1, keepdims=True) / X.shape[1]).astype(Y.dtype))


def mean(x, out):
    tile = 1 << (x.shape[1] - 1).bit_length()
    ct.launch(torch.cuda.current_stream(), (x.shape[0],), mean_kernel, (x, out, tile))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def mean_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = means of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), (ct.sum(tile, 1, keepdims=True) / TILE).astype(Y.dtype))


def mean(x, out):
    tile = 1 << (x.shape[1] - 1).bit_length()
    ct.launch(torch.cuda.current_stream(), (x.shape[0],), mean_kernel, (x, out, tile))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Where a sum over padding is divided by the size of the tile."""
        for operation in flow.named("truediv"):
            x, y = operation.value("x"), operation.value("y")
            for padding in x.summed if isinstance(x, Tile) else ():
                if isinstance(y, Scalar) and y.number and y.number.divided(padding.size) is not None:
                    message = (
                        f"the mean over {padding.array} divides by the size of its tiles, which is more than the row "
                        f"has elements: {padding.why}"
                    )
                    yield self.finding(flow.module, operation.node, message)


class IntegerPadding(KernelRule):
    """Integers are padded with what only floating-point numbers have."""

    code = "TW214"
    severity = Severity.ERROR
    why = "The compiler refuses it, and does not say where: integers have neither infinities nor NaN."
    advice = "Pad integers with ZERO, and replace what lies outside with `ct.where`."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_max_kernel(X, Y, N: int, TILE: ct.Constant[int]):
    """Y (M, 1) = the largest element of each row of X (M, N) of int32, where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.int32)
    tile = ct.where(ct.arange(TILE, dtype=ct.int32)[None, :] < N, tile, -(2**31))
    ct.store(Y, (ct.bid(0), 0), ct.max(tile, 1, keepdims=True))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_max_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = the largest element of each row of X (M, N) of int32, where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
    ct.store(Y, (ct.bid(0), 0), ct.max(tile & 0xFF, 1, keepdims=True))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Where a tile that was padded so is used in a way that only integers allow, or the host makes it so."""
        for load in flow.named("load"):
            mode, array = load.value("padding_mode"), load.value("array")
            name = mode.name.rpartition(".")[2] if isinstance(mode, Named) else ""
            if name not in ("NEG_INF", "POS_INF", "NAN") or not isinstance(array, Array):
                continue
            if _used_as_integer(flow, array) or _made_of_integers(flow, array):
                message = f"{array.name} holds integers, which cannot be padded with {name}"
                yield self.finding(flow.module, load.nodes["padding_mode"], message)


def _used_as_integer(flow: Flow, array: Array) -> bool:
    for operation in flow.named(*_INTEGER_ONLY):
        if any(isinstance(each, Tile) and each.array == array for each in operation.values.values()):
            return True
    return False


def _made_of_integers(flow: Flow, array: Array) -> bool:
    given = flow.launches.given(array.name)
    return bool(given) and all(_INTEGER_DTYPE.search(ast.unparse(each)) for each in given)
