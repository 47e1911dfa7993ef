"""Elements beyond the end of an array that reach a reduction or a matrix product."""

import math
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
from tilewright.rules.kernel_rule import tile_alias
from tilewright.rules.reduced import NEUTRAL
from tilewright.rules.reduced import reached
from tilewright.rules.rule import Proof
from tilewright.rules.values import Outside
from tilewright.rules.values import Padding
from tilewright.rules.values import Tile

_MODES = {0.0: "ZERO", -math.inf: "NEG_INF", math.inf: "POS_INF"}


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
        a = ct.load(A, (m, k), (TILE, TILE))
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
        for operation in flow.named(*NEUTRAL, "mma", "matmul"):
            for padding, _ in reached(operation):
                if padding.kind is not Outside.ANYTHING or given(padding.load, "padding_mode") is not None:
                    continue
                line = operation.node.lineno
                message = (
                    f"the tile of {padding.array} may hang over its end ({padding.why}); what lies there is "
                    f"undetermined, and reaches ct.{operation.name} in line {line}"
                )
                yield self.finding(flow.module, padding.load, message, fix=self._fix(flow, padding, operation))

    def _fix(self, flow: Flow, padding: Padding, operation: Operation) -> Fix | None:
        prefix = tile_alias(flow.module)
        x = operation.value("x")
        direct = isinstance(x, Tile) and x.array is not None
        if prefix is None or (operation.name in ("min", "max", "argmin", "argmax") and not direct):
            return None
        if flow.module.names.tile(padding.load.func) != "load":
            return None  # of a view, whose padding is given elsewhere
        mode = _MODES.get(NEUTRAL.get(operation.name, 0.0), "ZERO")
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
        for operation in flow.named(*NEUTRAL, "mma", "matmul"):
            for padding, operand in reached(operation):
                neutral = NEUTRAL.get(operation.name, 0.0)
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
                    f"ct.{operation.name} does not leave out: pad with its neutral element"
                )
                yield self.finding(flow.module, operation.node, message)
