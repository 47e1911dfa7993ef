"""Numbers of axes that must agree: of an index and a tile, of matrices."""

from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof
from tilewright.rules.values import Scalar
from tilewright.rules.values import Sequence
from tilewright.rules.values import Tile
from tilewright.rules.values import Value


def _length(value: Value) -> int | None:
    if isinstance(value, Sequence):
        return len(value.items)
    return 1 if isinstance(value, Scalar) and value.number is not None and value.parameter is None else None


class RankOfProduct(KernelRule):
    """A product of matrices with more than three axes."""

    code = "TW290"
    severity = Severity.ERROR
    why = (
        "`ct.mma` and `ct.matmul` take matrices, or batches of them. With four axes the compiler fails without a line: "
        '"Return code 3", then "operands must be 2D or 3D tiles".'
    )
    advice = "Fold the leading axes into one first: `x.reshape((TILE_B, TILE_M, TILE_K))`, or drop those of length 1."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def product_kernel(A, B, C, TILE: ct.Constant[int]):
    """C = A @ B, all (1, 1, TILE, TILE)."""
    a = ct.load(A, (0, 0, 0, 0), (1, 1, TILE, TILE)).reshape((TILE, TILE))
    b = ct.load(B, (0, 0, 0, 0), (1, 1, TILE, TILE)).reshape((TILE, TILE))
    acc = ct.mma(a, b, ct.zeros((TILE, TILE), ct.float32))
    ct.store(C, (0, 0, 0, 0), acc.reshape((1, 1, TILE, TILE)).astype(C.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def product_kernel(A, B, C, TILE: ct.Constant[int]):
    """C = A @ B, all (1, 1, TILE, TILE)."""
    a, b = ct.load(A, (0, 0, 0, 0), (1, 1, TILE, TILE)), ct.load(B, (0, 0, 0, 0), (1, 1, TILE, TILE))
    acc = ct.mma(a, b, ct.zeros((1, 1, TILE, TILE), ct.float32))
    ct.store(C, (0, 0, 0, 0), acc.astype(C.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Operands of which the rank is known to be greater."""
        for operation in flow.named("mma", "matmul"):
            ranks = [each.rank for each in (operation.value("x"), operation.value("y")) if isinstance(each, Tile)]
            worst = max((rank for rank in ranks if rank is not None), default=0)
            if worst > 3:
                message = f"ct.{operation.name} takes tiles of two or three axes, not of {worst}: reshape"
                yield self.finding(flow.module, operation.node, message)


class RankOfIndex(KernelRule):
    """An index and a tile of different numbers of axes."""

    code = "TW291"
    severity = Severity.ERROR
    why = (
        "Index, tile and array must have the same number of axes. Where a tile is stored, the compiler fails without "
        'a line: "Return code 3", then "expected tensor_view rank and tile rank to match".'
    )
    advice = "Reshape the tile, keep the axis of a reduction with `keepdims=True`, or add the missing index."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (TILE, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), ct.sum(tile, 1, keepdims=True).astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (TILE, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), ct.sum(tile, 1).astype(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, N) = X (M, N)."""
    ct.store(Y, (ct.bid(0), ct.bid(1)), ct.load(X, (ct.bid(0), ct.bid(1)), (TILE,)))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Loads whose index and shape, and stores whose index and tile, differ in length."""
        for operation in flow.named("load", "store"):
            index = _length(operation.value("index"))
            if index is None:
                continue
            other = self._rank(operation)
            if other is not None and other != index:
                what = "shape" if operation.name == "load" else "tile"
                message = f"the index has {index} {_axes(index)}, the {what} {other}: give both as many"
                yield self.finding(flow.module, operation.node, message)

    def _rank(self, operation: Operation) -> int | None:
        if operation.name == "load":
            return _length(operation.value("shape")) or None  # one element, `shape=()`, of any array
        tile = operation.value("tile")
        # A tile without axes may be stored anywhere.
        return tile.rank or None if isinstance(tile, Tile) else None


def _axes(number: int) -> str:
    return "axis" if number == 1 else "axes"
