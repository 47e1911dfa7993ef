"""Operations that move elements: reshape, broadcast, permute, concatenate, extract and insert."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.faults import OutOfBounds
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.dtypes import as_scalar
from tilewright.interpret.numbers.dtypes import as_tensor
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.lowering import lowers
from tilewright.interpret.translate.operands import element_of
from tilewright.interpret.translate.operands import shape_of


@lowers("tile_reshape")
def _reshape(op: Any) -> Step:
    return Step(reshaping(element_of(op.x), shape_of(op.result_var)), (op.x,))


def reshaping(element: Element, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """The function that gives a tile another shape; an integer that all blocks share becomes a Python int."""

    def reshape(x: Any) -> Any:
        x = as_tensor(x, element)
        return x.reshape(len(x), *shape)

    def reshape_to_scalar(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        if len(x) > 1:
            return x.reshape(-1)
        return as_scalar(x, element)

    return reshape_to_scalar if shape == () and element.is_integer else reshape


@lowers("tile_broadcast")
def _broadcast(op: Any) -> Step:
    element, shape = element_of(op.x), shape_of(op.result_var)

    def broadcast(x: Any) -> Tensor:
        x = as_tensor(x, element)
        return x.expand(len(x), *shape)

    return Step(broadcast, (op.x,))


@lowers("tile_permute", "axes")
def _permute(op: Any) -> Step:
    axes = (0, *(axis + 1 for axis in op.axes))
    return Step(lambda x: x.permute(axes), (op.x,))


@lowers("tile_cat", "axis")
def _cat(op: Any) -> Step:
    axis = op.axis + 1
    return Step(lambda x, y: torch.cat(same_blocks(x, y), axis), (op.x, op.y))


def same_blocks(*tiles: Tensor) -> tuple[Tensor, ...]:
    """The tiles with one entry for each block, where one of them has that."""
    blocks = max(map(len, tiles))
    return tuple(tile if len(tile) == blocks else tile.expand(blocks, *tile.shape[1:]) for tile in tiles)


@lowers("tile_extract", "shape")
def _extract(op: Any) -> Step:
    return Step(extraction(shape_of(op.x), tuple(op.shape)), (op.x, op.index))


def extraction(whole: tuple[int, ...], part: tuple[int, ...]) -> Callable[[Tensor, Sequence[Any]], Tensor]:
    """The function that takes, from a tile of shape `whole`, its part of shape `part` at an index in units of parts.

    Raises `OutOfBounds` for an index beyond the tile.
    """

    def extract(x: Tensor, index: Sequence[Any]) -> Tensor:
        return x[_positions(len(x), index, whole, part)]

    return extract


@lowers("tile_insert")
def _insert(op: Any) -> Step:
    return Step(insertion(shape_of(op.x), shape_of(op.value), element_of(op.value)), (op.x, op.value, op.index))


def insertion(whole: tuple[int, ...], part: tuple[int, ...], element: Element) -> Callable[..., Tensor]:
    """The function that replaces the part of a tile that `extraction` takes."""

    def insert(x: Tensor, value: Any, index: Sequence[Any]) -> Tensor:
        value = as_tensor(value, element)
        blocks = max(len(x), len(value), *(len(each) for each in index if isinstance(each, Tensor)), 1)
        result = x.expand(blocks, *whole).clone()
        result[_positions(blocks, index, whole, part)] = value.reshape(len(value), *part)
        return result

    return insert


def _positions(blocks: int, index: Sequence[Any], whole: tuple[int, ...], part: tuple[int, ...]) -> tuple[Any, ...]:
    """What to index a tile of `blocks` entries with, for the part at `index`."""
    _check(index, whole, part)
    if not any(isinstance(each, Tensor) for each in index):
        return (slice(None), *(slice(i * size, (i + 1) * size) for i, size in zip(index, part, strict=True)))
    several = max([blocks, *(len(each) for each in index if isinstance(each, Tensor))])
    block = torch.arange(several) if blocks > 1 else torch.zeros(several, dtype=torch.int64)
    positions = [block.reshape(-1, *[1] * len(part))]
    for axis, (each, size) in enumerate(zip(index, part, strict=True)):
        along = torch.arange(size).reshape([-1 if other == axis else 1 for other in range(len(part))])
        start = each.to(torch.int64).reshape(-1, *[1] * len(part)) if isinstance(each, Tensor) else each
        positions.append(start * size + along[None])
    return tuple(positions)


def _check(index: Sequence[Any], whole: tuple[int, ...], part: tuple[int, ...]) -> None:
    for axis, (each, size, extent) in enumerate(zip(index, part, whole, strict=True)):
        count = extent // size
        least, most = (int(each.min()), int(each.max())) if isinstance(each, Tensor) else (each, each)
        if least < 0 or most >= count:
            raise OutOfBounds(
                f"index {least if least < 0 else most} along axis {axis} is outside of a tile of shape {whole}\n"
                f"parts of shape {part} have indices from 0 to {count - 1} there"
            )
