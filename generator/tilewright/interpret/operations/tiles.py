"""Loads and stores of the tiles of views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.faults import OutOfBounds
from tilewright.interpret.memory import access
from tilewright.interpret.memory.access import Site
from tilewright.interpret.memory.allocations import Undetermined
from tilewright.interpret.memory.arrays import ArrayValue
from tilewright.interpret.memory.arrays import Scalar
from tilewright.interpret.memory.arrays import Tiling
from tilewright.interpret.memory.arrays import tiling
from tilewright.interpret.memory.boxes import Box
from tilewright.interpret.memory.boxes import Elements
from tilewright.interpret.memory.boxes import Place
from tilewright.interpret.memory.boxes import boxes
from tilewright.interpret.memory.boxes import elements
from tilewright.interpret.memory.boxes import place
from tilewright.interpret.memory.padding import padding
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.dtypes import as_tensor
from tilewright.interpret.numbers.dtypes import from_storage
from tilewright.interpret.numbers.dtypes import to_storage
from tilewright.interpret.run import Run
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.lowering import lowers

_HINTS = ("latency", "allow_tma", "memory_order", "memory_scope")


@dataclass(frozen=True, slots=True)
class TileAccess:
    """What is fixed about an access to tiles of a view; `inbounds` are the dimensions promised not to reach beyond."""

    site: Site
    geometry: Tiling
    inbounds: tuple[bool, ...]
    fill: dict[Undetermined, float]

    @property
    def tile(self) -> tuple[int, ...]:
        """Shape of the tile."""
        return self.geometry.tile


def tile_access(op: Any) -> TileAccess:
    """What is fixed about an operation on a view."""
    view_type = op.view.get_type()
    geometry = tiling(view_type)
    site = access.site(op, op.view, view_type.array_ty.dtype)
    return TileAccess(site, geometry, tuple(getattr(op, "inbounds", ())), padding(geometry.padding, site.element))


@lowers("tile_load", "inbounds", *_HINTS)
def _tile_load(op: Any) -> Step:
    static = tile_access(op)
    return Step(lambda run, array, index: load_tile(static, run, array, index), (op.view, op.index), needs_run=True)


@lowers("tile_store", "inbounds", *_HINTS)
def _tile_store(op: Any) -> Step:
    static = tile_access(op)
    return Step(
        lambda run, array, index, tile: store_tile(static, run, array, index, tile),
        (op.view, op.index, op.tile),
        needs_run=True,
    )


def load_tile(static: TileAccess, run: Run, array: ArrayValue, index: Sequence[Scalar]) -> Tensor | int:
    """Tiles (b, *tile) at an index of the view; elements outside of the array are padded."""
    where = place(static.geometry, array, index)
    held = static.site.element
    if static.site.order == "ACQUIRE":
        run.memory.ordered = True
    if run.checker is None and static.geometry.sparse is None:
        tile = _load_boxes(static, run, where)
    else:
        spots = elements(where, static.tile, held.itemsize, static.inbounds)
        _require_promised(static, run, spots)
        _require_overlap(static, run, spots)
        fill = torch.full((1,), static.fill[run.memory.undetermined], dtype=held.compute)
        undetermined = static.geometry.padding == "UNDETERMINED"
        tile = access.load_elements(run, static.site, spots.addresses, spots.inside, fill, undetermined)
    return access.result(tile, held, static.tile)


def _load_boxes(static: TileAccess, run: Run, where: Place) -> Tensor:
    held = static.site.element
    parts = boxes(where, static.tile, held.itemsize)
    _require_whole(static, where, parts)
    if len(parts) == 1 and parts[0].rows is None and parts[0].sizes == static.tile:
        return _read_box(run, parts[0], held)
    tile = torch.full((where.batch, *static.tile), static.fill[run.memory.undetermined], dtype=held.compute)
    for part in parts:
        blocks = slice(None) if part.rows is None else part.rows
        tile[blocks, *part.region] = _read_box(run, part, held)
    return tile


def _read_box(run: Run, part: Box, held: Element) -> Tensor:
    if isinstance(part.starts, int):
        raw = run.memory.box(part.starts, part.sizes, part.strides, held.storage, "read").clone()[None]
    else:
        view, positions = run.memory.boxes(part.starts, part.sizes, part.strides, held.storage, "read")
        raw = view.index_select(0, positions)
    return from_storage(raw, held)


def store_tile(static: TileAccess, run: Run, array: ArrayValue, index: Sequence[Scalar], tile: Tensor | int) -> None:
    """Write tiles (b, *tile) at an index of the view; elements outside of the array are dropped."""
    where = place(static.geometry, array, index)
    held = static.site.element
    raw = to_storage(as_tensor(tile, held), held)
    if run.checker is None and static.geometry.sparse is None and not where.repeats:
        _store_boxes(static, run, where, raw)
        return
    spots = elements(where, static.tile, held.itemsize, static.inbounds)
    _require_promised(static, run, spots)
    _require_overlap(static, run, spots)
    access.store_elements(run, static.site, spots.addresses, spots.inside, raw)


def _store_boxes(static: TileAccess, run: Run, where: Place, raw: Tensor) -> None:
    parts = boxes(where, static.tile, static.site.element.itemsize)
    _require_whole(static, where, parts)
    for part in parts:
        values = raw if part.rows is None or len(raw) == 1 else raw[part.rows]
        values = values[:, *part.region]
        if isinstance(part.starts, int):  # the last of the blocks has the last word
            view = run.memory.box(part.starts, part.sizes, part.strides, raw.dtype, "write")
            run.memory.overwrite(view, None, values[-1])
        else:
            view, positions = run.memory.boxes(part.starts, part.sizes, part.strides, raw.dtype, "write")
            run.memory.overwrite(view, positions, values)


def _require_whole(static: TileAccess, where: Place, parts: Sequence[Box]) -> None:
    if not any(static.inbounds):
        return
    promised = [dimension for dimension, flag in enumerate(static.inbounds) if flag]
    whole = [part for part in parts if all(part.sizes[each] == static.tile[each] for each in promised)]
    if sum(where.batch if part.rows is None else len(part.rows) for part in whole) < where.batch:
        raise _broken_promise(static)


def _require_promised(static: TileAccess, run: Run, spots: Elements) -> None:
    if spots.promised is None or bool(spots.promised.all()):
        return
    if run.checker is None:
        raise _broken_promise(static)
    run.checker.broken_promise(static.site, spots, static.geometry.order)


def _require_overlap(static: TileAccess, run: Run, spots: Elements) -> None:
    if run.checker is not None and static.geometry.sparse is None and not bool(spots.inside.any()):
        run.checker.outside(static.site, spots, static.geometry.order)


def _broken_promise(static: TileAccess) -> OutOfBounds:
    return OutOfBounds(
        f"a tile of shape {static.tile} reaches beyond its array, although check_bounds is False\n"
        "a GPU would touch other memory: leave check_bounds at True, or keep the tile inside"
    )
