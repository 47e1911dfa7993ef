"""Numbers of axes that must agree: of an array and its index, of a tile and where it is stored, of products."""

import ast
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
                message = f"ct.{operation.name} takes tiles of two or three axes, not of {worst}"
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
                message = f"the index has {index} {_axes(index)}, the {what} {other}"
                yield self.finding(flow.module, operation.node, message)

    def _rank(self, operation: Operation) -> int | None:
        if operation.name == "load":
            return _length(operation.value("shape")) or None  # one element, `shape=()`, of any array
        tile = operation.value("tile")
        # A tile without axes may be stored anywhere.
        return tile.rank or None if isinstance(tile, Tile) else None


def _axes(number: int) -> str:
    return "axis" if number == 1 else "axes"


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
            message = f"the first matrix has {_name(inner)} columns, the second {_name(outer)} rows"
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
                yield self.finding(flow.module, operation.node, f"ct.mma of {dtypes[0]} and {dtypes[1]}")


class FloatingSize(KernelRule):
    """A size or an index that is no integer."""

    code = "TW294"
    severity = Severity.ERROR
    why = "`/` gives a floating-point number, also of integers."
    advice = "Divide with `//`, or round up with `ct.cdiv`."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def halves_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), half a tile to each block."""
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE // 2,)))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def halves_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), half a tile to each block."""
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE / 2,)))
''',
        HEAD
        + '''@ct.kernel
def pairs_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = each tile of X (N,) twice."""
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0) / 2,), (TILE,)))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Quotients in shapes, indices and the bounds of loops."""
        for operation in flow.named("load", "store", "gather", "scatter", "zeros", "full", "ones", "arange", "reshape"):
            for name in ("shape", "index", "indices", "size"):
                value = operation.values.get(name)
                items: tuple[Value, ...] = value.items if isinstance(value, Sequence) else (value,) if value else ()
                for place, item in enumerate(items):
                    if isinstance(item, Scalar | Tile) and item.dtype in ("float", "float32"):
                        node = operation.nodes[name]
                        written = isinstance(node, ast.Tuple) and len(node.elts) == len(items)
                        at = node.elts[place] if written else node  # type: ignore[attr-defined]
                        yield self.finding(flow.module, at, f"`{ast.unparse(at)}` is a floating-point number")
