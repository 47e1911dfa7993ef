"""Report stores that TMA would make beside their array: it writes whole units of 16 bytes.

When the compiler takes TMA was read from the code that cuda-tile 1.7 makes for sm_90: for a partition of an array
with a contiguous dimension of several elements, at an address and with other strides that are multiples of 16 bytes,
and for values that come from a reduction or a product of matrices, with anything in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.interpret.check.dataflow import Dataflow
from tilewright.interpret.memory.allocations import Memory
from tilewright.interpret.memory.boxes import Place
from tilewright.interpret.memory.boxes import place
from tilewright.interpret.operations.tiles import TileAccess
from tilewright.interpret.operations.tiles import tile_access
from tilewright.interpret.run import Run
from tilewright.interpret.translate.lowering import Step

UNIT = 16  # bytes that TMA stores at a time
_MOST_DIMENSIONS = 5


def watched(body: Any, arch: str) -> Callable[[Any, Step], Step]:
    """What makes the steps of a kernel report stores beside their array in checking mode."""
    names = Dataflow(body).combined_stores() if _has_tma(arch) else set()

    def watch(op: Any, step: Step) -> Step:
        if op.op != "tile_store" or op.tile.name not in names or getattr(op, "allow_tma", None) is False:
            return step
        static = tile_access(op)
        partition = static.geometry.sparse is None and static.geometry.steps == static.tile
        if not partition or len(static.tile) > _MOST_DIMENSIONS:
            return step

        def store(run: Run, array: Any, index: Any, tile: Any) -> Any:
            if run.checker is not None:
                where = place(static.geometry, array, index)
                found = beside(where, static, run.memory)
                if found is not None:
                    run.checker.beside(static.site, *found)
            return step.function(run, array, index, tile)

        return Step(store, step.operands, needs_run=True)

    return watch


def beside(where: Place, static: TileAccess, memory: Memory) -> tuple[int, int] | None:
    """The address behind the first row of the tile, and how many bytes of other memory would be overwritten there.

    None where it is none. Blocks of a checked launch run one by one, so that each number of `where` is one integer.
    """
    size = static.site.element.itemsize
    lengths, strides, firsts = ([int(each) for each in part] for part in (where.shape, where.strides, where.firsts))
    long = [dimension for dimension, length in enumerate(lengths) if length > 1]
    row = next((dimension for dimension in long if strides[dimension] == 1), None)
    others = [dimension for dimension in long if dimension != row]
    if row is None or any(strides[dimension] * size % UNIT for dimension in others):
        return None
    origin = int(where.origin)
    allocation = memory.find(origin)
    known = any(extent.address == origin and lengths[row] in extent.shape for extent in memory.extents)
    if allocation is None or not known or (origin - allocation.base) % UNIT:
        return None
    inside = all(0 <= firsts[dimension] < lengths[dimension] for dimension in others)
    reaches = firsts[row] < lengths[row] < firsts[row] + static.tile[row] and static.tile[row] * size >= UNIT
    if not inside or not reaches:
        return None
    start = origin + size * sum(firsts[dimension] * strides[dimension] for dimension in others)
    end = start + size * lengths[row]
    count = min(end + -end % UNIT, allocation.end) - end
    return (end, count) if count > 0 else None


def _has_tma(arch: str) -> bool:
    return int(arch.removeprefix("sm_").rstrip("af")) >= 90
