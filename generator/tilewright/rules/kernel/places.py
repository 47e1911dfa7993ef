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
from tilewright.rules.memory import entries_of
from tilewright.rules.rule import Proof
from tilewright.rules.shapes import Shape
from tilewright.rules.shapes import shape_of
from tilewright.rules.symbols import Polynomial
from tilewright.rules.values import Scalar
from tilewright.rules.values import Sequence
from tilewright.rules.values import Tile


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
            for entry in entries_of(operation.value("indices")):
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
