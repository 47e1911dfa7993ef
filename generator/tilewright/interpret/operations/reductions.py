"""Reductions and scans with any associative function, in the dtype of the tiles, as a tree.

Neighbours meet, the earlier as the first argument: a GPU may take another tree, and round otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.numbers.dtypes import INT64
from tilewright.interpret.numbers.dtypes import as_tensor
from tilewright.interpret.operations.shapes import same_blocks

Body = Callable[..., Sequence[Any]]


def reduce(body: Body, tiles: Sequence[Tensor], axis: int) -> tuple[Tensor, ...]:
    """Reduce tiles of shape (blocks or 1, *shape) along the `axis` of shape, a power of two, with `body`.

    `body` takes the earlier and the later elements of the first tile, then of the second, and so on, as tiles of any
    shape, and returns as many results as there are tiles. Results lack the axis.
    """
    axis += 1
    before = (slice(None),) * axis
    earlier, later = (*before, slice(0, None, 2)), (*before, slice(1, None, 2))
    while tiles[0].shape[axis] > 1:
        tiles = _call(body, [part for tile in tiles for part in (tile[earlier], tile[later])])
    return tuple(tile.squeeze(axis) for tile in tiles)


def scan(body: Body, tiles: Sequence[Tensor], axis: int, reverse: bool) -> tuple[Tensor, ...]:
    """Inclusive scan of tiles of shape (blocks or 1, *shape) along the `axis` of shape with `body`, as of `reduce`.

    In reverse it starts from the last element. Each step doubles the span (Hillis and Steele, Data parallel algorithms,
    1986). Results have the shape of the tiles.
    """
    axis += 1
    if reverse:
        tiles = [tile.flip(axis) for tile in tiles]
    size, span = tiles[0].shape[axis], 1
    while span < size:
        rest = size - span
        pairs = [part for tile in tiles for part in (tile.narrow(axis, 0, rest), tile.narrow(axis, span, rest))]
        tiles = [
            torch.cat(same_blocks(tile.narrow(axis, 0, span), spanned), axis)
            for tile, spanned in zip(tiles, _call(body, pairs), strict=True)
        ]
        span *= 2
    return tuple(tile.flip(axis) if reverse else tile for tile in tiles)


def _call(body: Body, pairs: Sequence[Tensor]) -> list[Tensor]:
    """Results of `body`, with the shape of its operands even where it returns constants."""
    shape = pairs[0].shape
    results = []
    for result, operand in zip(body(*pairs), pairs[::2], strict=True):
        if not isinstance(result, Tensor):
            result = as_tensor(result, INT64).to(operand.dtype)
        if result.shape[1:] != shape[1:]:
            result = result.reshape(len(result), *[1] * (len(shape) - 1)).expand(len(result), *shape[1:])
        results.append(result)
    return results
