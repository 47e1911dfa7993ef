"""Where tiles lie in arrays: `ct.load` and `ct.store` count in tiles, `ct.gather` and `ct.scatter` in elements."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.reaching import values_of
from tilewright.rules.rule import Proof
from tilewright.rules.shapes import Shape
from tilewright.rules.shapes import shape_of
from tilewright.rules.symbols import Polynomial
from tilewright.rules.values import Array
from tilewright.rules.values import Scalar
from tilewright.rules.values import Sequence
from tilewright.rules.values import Tile
from tilewright.rules.values import Value

_ATOMICS = tuple(f"atomic_{name}" for name in ("add", "and", "cas", "max", "min", "or", "xchg", "xor"))


def _sizes(operation: Operation) -> Shape | None:
    if operation.name == "load":
        return shape_of(operation.values.get("shape"))
    tile = operation.value("tile")
    return tile.shape if isinstance(tile, Tile) else None


class ElementIndex(KernelRule):
    """An element's index where ct.load or ct.store takes a tile's."""

    code = "TW201"
    severity = Severity.ERROR
    why = (
        "`ct.load` and `ct.store` count in tiles: with the index of an element they read or write far beyond the "
        "tile that is meant, mostly outside of the array, where nothing is checked."
    )
    advice = "Pass the number of the tile: `ct.bid(0)`, not `ct.bid(0) * TILE`; let a loop count tiles, not elements."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    tile = ct.load(X, (ct.bid(0),), (TILE,))
    ct.store(Y, (ct.bid(0),), tile)
''',
        HEAD
        + '''@ct.kernel
def copy_rows_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, N) = X (M, N), a row to each block."""
    for start in range(0, X.shape[1], TILE):
        tile = ct.load(X, (ct.bid(0), start // TILE), (1, TILE))
        ct.store(Y, (ct.bid(0), start // TILE), tile)
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    start = ct.bid(0) * TILE
    tile = ct.load(X, (start,), (TILE,))
    ct.store(Y, (start,), tile)
''',
        HEAD
        + '''@ct.kernel
def copy_rows_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, N) = X (M, N), a row to each block."""
    for start in range(0, X.shape[1], TILE):
        tile = ct.load(X, (ct.bid(0), start), (1, TILE))
        ct.store(Y, (ct.bid(0), start // TILE), tile)
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Index entries that are multiples of the size of the tile along their axis."""
        for operation in flow.named("load", "store"):
            index, sizes = operation.value("index"), _sizes(operation)
            if sizes is None or not isinstance(index, Sequence | Scalar):
                continue
            entries = index.items if isinstance(index, Sequence) else (index,)
            if len(entries) != len(sizes):
                continue
            for place, (entry, size) in enumerate(zip(entries, sizes, strict=True)):
                number = entry.number if isinstance(entry, Scalar) else None
                if number is None or size is None or not _counts_elements(number, size):
                    continue
                node = _entry(operation.nodes["index"], place)
                message = (
                    f"`{ast.unparse(node)}` counts elements in steps of {_text(size)}; ct.{operation.name} takes the "
                    "number of the tile"
                )
                yield self.finding(flow.module, node, message, fix=_without_factor(flow, node, size))


def _counts_elements(number: Polynomial, size: Polynomial) -> bool:
    if not number.has("bid", "step", "floor", "ceil", "dimension") or size.number == 1:
        return False
    if size.number is not None and size.number < 16:
        return False  # a few tiles side by side, as two halves
    return number.divided(size) is not None


def _entry(index: ast.expr, place: int) -> ast.expr:
    return index.elts[place] if isinstance(index, ast.Tuple) and place < len(index.elts) else index


def _text(size: Polynomial) -> str:
    atom = size.atom
    return str(size.number if size.number is not None else atom.key[0] if atom and atom.key else "the tile")


def _without_factor(flow: Flow, node: ast.expr, size: Polynomial) -> Fix | None:
    """`bid * TILE` in place becomes `bid`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    for kept, factor in ((node.left, node.right), (node.right, node.left)):
        value = flow.values.get(factor)
        if isinstance(value, Scalar) and value.number == size:
            text = flow.module.source(kept)
            return Fix(f"Pass {text}", (flow.module.replacement(node, text),))
    return None


class TileIndex(KernelRule):
    """A tile's index where ct.gather or ct.scatter takes elements'."""

    code = "TW202"
    severity = Severity.ERROR
    why = (
        "`ct.gather` and `ct.scatter` count in elements: `ct.bid(0) + ct.arange(TILE)` moves by one element from "
        "block to block, so that the blocks overlap and most of the array is never reached."
    )
    advice = "Multiply by the size of the tile: `ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)`."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    place = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    ct.scatter(Y, place, ct.gather(X, place))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    place = ct.bid(0) + ct.arange(TILE, dtype=ct.int32)
    ct.scatter(Y, place, ct.gather(X, place))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Places written to that move by one element from block to block."""
        for operation in flow.named("scatter"):
            for entry in _entries(operation.value("indices")):
                if not isinstance(entry, Tile) or entry.element is None:
                    continue
                lanes = [
                    monomial[0]
                    for monomial, _ in entry.element.terms
                    if len(monomial) == 1 and monomial[0].kind == "lane"
                ]
                blocks = [
                    (monomial, count)
                    for monomial, count in entry.element.terms
                    if any(each.kind == "bid" for each in monomial)
                ]
                if len(lanes) == 1 and len(blocks) == 1 and len(blocks[0][0]) == 1 and blocks[0][1] == 1:
                    size = next((part for part in lanes[0].parts), None)
                    if size is None or (size.number is not None and size.number <= 1):
                        continue
                    node = operation.nodes["indices"]
                    message = (
                        f"`{ast.unparse(node)}` moves by one element from block to block, and each block writes "
                        f"{_text(size)}: they overlap"
                    )
                    yield self.finding(flow.module, node, message)


def _entries(indices: Value) -> tuple[Value, ...]:
    return indices.items if isinstance(indices, Sequence) else (indices,)


class BlocksWriteTheSame(KernelRule):
    """Several blocks write the same elements."""

    code = "TW203"
    severity = Severity.ERROR
    why = (
        "The kernel asks for its place along an axis of the grid, but writes to the same elements for every place "
        "there: whichever block comes last wins, and the work of the others is lost."
    )
    advice = "Make the index of what is written depend on every axis of the grid, or add with ct.atomic_add."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def split_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, blocks) = sums of parts of the rows of X (M, N)."""
    m, part = ct.bid(0), ct.bid(1)
    tile = ct.load(X, (m, part), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Y, (m, part), ct.sum(tile, 1, keepdims=True).astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def split_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N)."""
    m, part = ct.bid(0), ct.bid(1)
    tile = ct.load(X, (m, part), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Y, (m, 0), ct.sum(tile, 1, keepdims=True).astype(Y.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Stores whose value comes from an axis of the grid that their index does not depend on."""
        if flow.named(*_ATOMICS) or any(each.name.startswith("atomic") for each in flow.operations):
            return
        reads = {axis for each in flow.named("load", "gather") for axis in _axes(each)}
        stores = flow.named("store", "scatter")
        unread = {axis for axis in reads if stores and not any(axis in _axes(each) for each in stores)}
        for store in stores:
            if store.conditions or not all(_is_known(each) for each in _entries(_index(store))):
                return
        for axis in sorted(unread):
            if any(_grid_is_one(flow, axis)):
                continue
            message = (
                f"what is written does not depend on ct.bid({axis}): all blocks along that axis write the same elements"
            )
            yield self.finding(flow.module, stores[0].node, message)


def _index(operation: Operation) -> Value:
    return operation.value("index" if operation.name in ("load", "store") else "indices")


def _is_known(entry: Value) -> bool:
    number = entry.number if isinstance(entry, Scalar) else entry.element if isinstance(entry, Tile) else None
    return number is not None and not number.has("merge", "other")


def _axes(operation: Operation) -> set[int]:
    found: set[int] = set()
    for entry in _entries(_index(operation)):
        number = entry.number if isinstance(entry, Scalar) else entry.element if isinstance(entry, Tile) else None
        for atom in number.atoms() if number is not None else ():
            if atom.kind == "bid" and isinstance(atom.key[0], int):
                found.add(atom.key[0])
    return found


def _grid_is_one(flow: Flow, axis: int) -> Iterator[bool]:
    for launch in flow.launches.launches:
        for grid in values_of(flow.module, launch.grid, launch.node) if launch.grid is not None else ():
            if isinstance(grid, ast.Tuple):
                size = grid.elts[axis] if axis < len(grid.elts) else None
                yield size is None or (isinstance(size, ast.Constant) and size.value == 1)


class WideIndex(KernelRule):
    """A flat index is computed with 32 bits."""

    code = "TW204"
    severity = Severity.INFO
    why = "`ct.bid(0) * TILE` has 32 bits: for more than 2^31 elements it overflows before it is widened."
    advice = "Compute with `ct.int64(ct.bid(0))`, or let the host cut the work into pieces of less than 2^31 elements."
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X: ct.IndexedWithInt64, Y: ct.IndexedWithInt64, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    place = ct.int64(ct.bid(0)) * TILE + ct.arange(TILE, dtype=ct.int64)
    ct.scatter(Y, place, ct.gather(X, place))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X: ct.IndexedWithInt64, Y: ct.IndexedWithInt64, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    place = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    ct.scatter(Y, place, ct.gather(X, place))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Flat indices of 32 bits into arrays that say that they need 64."""
        wide = {
            each.name
            for each in flow.kernel.parameters
            if each.node.annotation is not None and "IndexedWithInt64" in ast.unparse(each.node.annotation)
        }
        for operation in flow.named("gather", "scatter"):
            array, entries = operation.value("array"), _entries(operation.value("indices"))
            if not isinstance(array, Array) or array.name not in wide or len(entries) != 1:
                continue
            entry = entries[0]
            if isinstance(entry, Tile) and entry.dtype == "int32" and entry.element and entry.element.has("bid"):
                node = operation.nodes["indices"]
                message = f"`{ast.unparse(node)}` is computed with 32 bits, but {array.name} is indexed with 64"
                yield self.finding(flow.module, node, message)
