"""Means and variances over tiles that are larger than the row."""

import math
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.reduced import reached
from tilewright.rules.rule import Proof
from tilewright.rules.values import Outside
from tilewright.rules.values import Scalar
from tilewright.rules.values import Tile


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
        HEAD
        + '''@ct.kernel
def exp_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the exponentials of the rows of X (M, N)."""
    total = ct.zeros((1, TILE), ct.float32)
    for j in range(ct.cdiv(X.shape[1], TILE)):
        tile = ct.load(X, (ct.bid(0), j), (1, TILE), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
        total = total + ct.exp(tile)
    ct.store(Y, (ct.bid(0), 0), ct.sum(total, 1, keepdims=True).astype(Y.dtype))
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
            for padding, _ in reached(operation):
                changed = padding.kind is Outside.NUMBER and padding.number != 0 and math.isfinite(padding.number)
                if padding.kind is not Outside.COMPUTED and not changed:
                    continue
                message = (
                    f"beyond the end of {padding.array} ({padding.why}) the elements are no longer zero, "
                    "and this sum counts them: mask them first"
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
        for operation in flow.named("truediv", "mul"):
            x, y = operation.value("x"), operation.value("y")
            if not isinstance(x, Tile) or not isinstance(y, Scalar):
                continue
            divisor = y.number if operation.name == "truediv" else y.reciprocal
            for padding in x.summed if divisor is not None else ():
                if divisor is not None and divisor.divided(padding.size) is not None:
                    message = (
                        f"the mean over {padding.array} divides by the size of its tiles, which is more than the row "
                        f"has elements: {padding.why}"
                    )
                    yield self.finding(flow.module, operation.node, message)
