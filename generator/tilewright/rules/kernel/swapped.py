"""Tiles that are stored where those of another shape belong."""

from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof
from tilewright.rules.shapes import Shape
from tilewright.rules.shapes import shape_of
from tilewright.rules.symbols import Polynomial
from tilewright.rules.values import Tile


class SwappedAxes(KernelRule):
    """A transposed tile is stored at the place of the one that was not."""

    code = "TW205"
    severity = Severity.ERROR
    why = (
        "`ct.store` counts in the tiles that it is given: a tile (TILE_N, TILE_M) at (i, j) lies elsewhere than the "
        "tile (TILE_M, TILE_N) that was loaded from (i, j), and it belongs at (j, i)."
    )
    advice = "Exchange the index as well: `ct.store(Y, (j, i), ct.transpose(tile))`."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def transpose_kernel(X, Y, TILE_M: ct.Constant[int], TILE_N: ct.Constant[int]):
    """Y (N, M) = X (M, N) transposed."""
    i, j = ct.bid(0), ct.bid(1)
    ct.store(Y, (j, i), ct.transpose(ct.load(X, (i, j), (TILE_M, TILE_N))))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def transpose_kernel(X, Y, TILE_M: ct.Constant[int], TILE_N: ct.Constant[int]):
    """Y (N, M) = X (M, N) transposed."""
    i, j = ct.bid(0), ct.bid(1)
    ct.store(Y, (i, j), ct.transpose(ct.load(X, (i, j), (TILE_M, TILE_N))))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Stores that pair two axes of the grid with each other's sizes in the loads."""
        loaded: dict[Polynomial, set[Polynomial]] = {}
        for operation in flow.named("load"):
            for place, size in _pairs(operation, shape_of(operation.values.get("shape"))):
                loaded.setdefault(place, set()).add(size)
        for operation in flow.named("store"):
            tile = operation.value("tile")
            pairs = _pairs(operation, tile.shape if isinstance(tile, Tile) else None)
            for place, size in pairs:
                for other, other_size in pairs:
                    crossed = loaded.get(place) == {other_size} and loaded.get(other) == {size}
                    if crossed and size != other_size:
                        message = "the tile is transposed, and its index is not: it is stored at the place of another"
                        yield self.finding(flow.module, operation.node, message)


def _pairs(operation: Operation, sizes: Shape | None) -> list[tuple[Polynomial, Polynomial]]:
    """Places of a block in the grid that are used as they are, with the parameter that is the size there."""
    places = shape_of(operation.values.get("index"))
    if places is None or sizes is None or len(places) != len(sizes):
        return []
    found = []
    for place, size in zip(places, sizes, strict=True):
        kinds = [None if each is None or each.atom is None else each.atom.kind for each in (place, size)]
        if place is not None and size is not None and kinds == ["bid", "parameter"]:
            found.append((place, size))
    return found
