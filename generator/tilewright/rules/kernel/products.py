"""Matrices that do not fit together."""

from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof
from tilewright.rules.values import Tile


class SizeOfProduct(KernelRule):
    """Matrices that do not fit together."""

    code = "TW292"
    severity = Severity.ERROR
    why = "The columns of the first matrix are the rows of the second."
    advice = "Load the second one as (K, N), or transpose it: `ct.mma(a, ct.transpose(b), acc)`."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def linear_kernel(X, W, Y, TILE_M: ct.Constant[int], TILE_N: ct.Constant[int], TILE_K: ct.Constant[int]):
    """Y (TILE_M, TILE_N) = X (TILE_M, TILE_K) @ W (TILE_N, TILE_K) transposed."""
    x, w = ct.load(X, (0, 0), (TILE_M, TILE_K)), ct.load(W, (0, 0), (TILE_N, TILE_K))
    acc = ct.mma(x, ct.transpose(w), ct.zeros((TILE_M, TILE_N), ct.float32))
    ct.store(Y, (0, 0), acc.astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def linear_kernel(X, W, Y, TILE_M: ct.Constant[int], TILE_N: ct.Constant[int], TILE_K: ct.Constant[int]):
    """Y (TILE_M, TILE_N) = X (TILE_M, TILE_K) @ W (TILE_N, TILE_K) transposed."""
    x, w = ct.load(X, (0, 0), (TILE_M, TILE_K)), ct.load(W, (0, 0), (TILE_N, TILE_K))
    acc = ct.mma(x, w, ct.zeros((TILE_M, TILE_N), ct.float32))
    ct.store(Y, (0, 0), acc.astype(Y.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Sizes that are written differently; one that is another constant may be equal, but then only by chance."""
        for operation in flow.named("mma", "matmul"):
            x, y = operation.value("x"), operation.value("y")
            if not isinstance(x, Tile) or not isinstance(y, Tile) or not x.shape or not y.shape:
                continue
            if min(len(x.shape), len(y.shape)) < 2:
                continue
            inner, outer = x.shape[-1], y.shape[-2]
            if inner is None or outer is None or inner == outer or not _are_distinct(operation, x, y):
                continue
            message = f"the first matrix has {_name(inner)} columns, the second {_name(outer)} rows: they must be equal"
            yield self.finding(flow.module, operation.node, message)


def _are_distinct(operation: Operation, x: Tile, y: Tile) -> bool:
    """Whether the sizes are numbers, or the second matrix would fit if it were transposed."""
    sizes = (x.shape or ())[-1], (y.shape or ())[-2]
    if all(size is not None and size.number is not None for size in sizes):
        return True
    return (y.shape or ())[-1] == sizes[0] and operation.name in ("mma", "matmul")


def _name(size: object) -> str:
    number = getattr(size, "number", None)
    atom = getattr(size, "atom", None)
    return str(number if number is not None else atom.key[0] if atom is not None and atom.key else "other")


class MixedProduct(KernelRule):
    """A product of matrices of different dtypes."""

    code = "TW293"
    severity = Severity.ERROR
    why = "`ct.mma` multiplies tiles of one dtype, apart from int8 with uint8."
    advice = "Convert one of them: `ct.mma(a, b.astype(a.dtype), acc)`."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def product_kernel(A, B, C, TILE: ct.Constant[int]):
    """C = A @ B, all (TILE, TILE)."""
    a, b = ct.load(A, (0, 0), (TILE, TILE)), ct.load(B, (0, 0), (TILE, TILE))
    acc = ct.mma(a.astype(ct.float16), b.astype(ct.float16), ct.zeros((TILE, TILE), ct.float32))
    ct.store(C, (0, 0), acc.astype(C.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def product_kernel(A, B, C, TILE: ct.Constant[int]):
    """C = A @ B, all (TILE, TILE)."""
    a, b = ct.load(A, (0, 0), (TILE, TILE)), ct.load(B, (0, 0), (TILE, TILE))
    acc = ct.mma(a.astype(ct.float32), b.astype(ct.float16), ct.zeros((TILE, TILE), ct.float32))
    ct.store(C, (0, 0), acc.astype(C.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Operands of two dtypes that the source says."""
        for operation in flow.named("mma"):
            x, y = operation.value("x"), operation.value("y")
            dtypes = [each.dtype for each in (x, y) if isinstance(each, Tile) and each.dtype is not None]
            known = len(dtypes) == 2 and not any("." in each for each in dtypes)
            if known and dtypes[0] != dtypes[1] and set(dtypes) != {"int8", "uint8"}:
                yield self.finding(
                    flow.module, operation.node, f"ct.mma of {dtypes[0]} and {dtypes[1]}: convert one to the other"
                )
