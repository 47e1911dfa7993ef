"""Where the tiles of a view lie in memory: as boxes inside of the array, or element by element."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.interpret.memory.arrays import ArrayValue
from tilewright.interpret.memory.arrays import Scalar
from tilewright.interpret.memory.arrays import Tiling
from tilewright.interpret.memory.arrays import scalar
from tilewright.interpret.numbers.dtypes import INT32
from tilewright.interpret.numbers.dtypes import wrap


@dataclass(frozen=True, slots=True)
class Box:
    """The part inside of the array of the tiles of some blocks; offsets and sizes in elements of the tile.

    `rows` are the blocks in the batch (None: all), `starts` the addresses of the element at `lows`, one for each block
    unless all are the same.
    """

    rows: Tensor | None
    lows: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    starts: Scalar

    @property
    def region(self) -> tuple[slice, ...]:
        """Index of this part in one tile."""
        return tuple(slice(low, low + size) for low, size in zip(self.lows, self.sizes, strict=True))


@dataclass(frozen=True, slots=True)
class Place:
    """The tiles of a batch in an array; all in the order of the dimensions of the tile."""

    origin: Scalar  # address of the array
    firsts: tuple[Scalar, ...]  # index in the array of the first element along each dimension
    shape: tuple[Scalar, ...]
    strides: tuple[Scalar, ...]

    @property
    def batch(self) -> int:
        """Blocks that have tiles of their own: 1 if all have the same."""
        scalars = (self.origin, *self.firsts, *self.shape, *self.strides)
        return max((len(each) for each in scalars if isinstance(each, Tensor)), default=1)

    @property
    def repeats(self) -> bool:
        """Whether several elements are known to be one in memory, as of an expanded tensor."""
        return any(isinstance(stride, int) and stride == 0 for stride in self.strides)


def place(geometry: Tiling, array: ArrayValue, index: Sequence[Scalar]) -> Place:
    """Where the tiles at `index` are; along the sparse dimension the index is a tile (b, n) and so is the first."""
    firsts = []
    for dimension, (each, step) in enumerate(zip(index, geometry.steps, strict=True)):
        if dimension == geometry.sparse:
            firsts.append(each.to(torch.int64) if isinstance(each, Tensor) else each)
        else:
            firsts.append(_index(each, geometry.narrow) * step)
    return Place(
        scalar(array.address),
        tuple(firsts),
        tuple(scalar(array.shape[axis]) for axis in geometry.order),
        tuple(scalar(array.strides[axis]) for axis in geometry.order),
    )


def _index(value: Scalar, narrow: bool) -> Scalar:
    value = scalar(value)
    if not narrow:
        return value
    return value.to(torch.int32).to(torch.int64) if isinstance(value, Tensor) else wrap(value, INT32)


def boxes(place: Place, tile: Sequence[int], itemsize: int) -> list[Box]:
    """The parts inside of the array: one box for all blocks that are cut in the same way."""
    cuts = [_cut(*each) for each in zip(place.firsts, place.shape, tile, strict=True)]
    lows, sizes = [low for low, _ in cuts], [size for _, size in cuts]
    starts = _address(place.origin, place.firsts, place.strides, itemsize)
    found = []
    for rows, values in _groups((*lows, *sizes, *place.strides)):
        rank = len(tile)
        low, size, strides = values[:rank], values[rank : 2 * rank], values[2 * rank :]
        if 0 not in size:
            own = starts if rows is None or isinstance(starts, int) else starts[rows]
            found.append(Box(rows, low, size, strides, _address(own, low, strides, itemsize)))
    return found


def _cut(first: Scalar, extent: Scalar, tile: int) -> tuple[Scalar, Scalar]:
    """Where the array begins in the tile along one dimension, and how many elements are inside."""
    if isinstance(first, int) and isinstance(extent, int):
        low = max(0, -first)
        return low, max(0, min(tile, extent - first) - low)
    if isinstance(first, Tensor) and isinstance(extent, int):
        least, most = (int(each) for each in torch.aminmax(first))
        if least >= 0 and most + tile <= extent:
            return 0, tile
    low = (-torch.as_tensor(first)).clamp(min=0)
    return low, ((extent - torch.as_tensor(first)).clamp(max=tile) - low).clamp(min=0)


def _address(origin: Scalar, firsts: Sequence[Scalar], strides: Sequence[Scalar], itemsize: int) -> Scalar:
    return functools.reduce(operator.add, (a * b * itemsize for a, b in zip(firsts, strides, strict=True)), origin)


def _groups(columns: Sequence[Scalar]) -> Iterator[tuple[Tensor | None, tuple[int, ...]]]:
    """Blocks that agree about all of these, and what they agree about."""
    varying = [each for each in columns if isinstance(each, Tensor)]
    if not varying:
        yield None, tuple(int(each) for each in columns)
        return
    varying = torch.broadcast_tensors(*varying)
    members = torch.zeros_like(varying[0])  # number of the group of each block
    count = 1
    for column in varying:
        values, places = torch.unique(column, return_inverse=True)
        if len(values) > 1:
            kinds, members = torch.unique(members * len(values) + places, return_inverse=True)
            count = len(kinds)
    for number in range(count):
        rows = (members == number).nonzero().squeeze(1) if count > 1 else None
        first = 0 if rows is None else int(rows[0])
        common = iter([int(column[first]) for column in varying])
        yield rows, tuple(next(common) if isinstance(each, Tensor) else each for each in columns)


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of the tiles of a batch one by one, each of shape (b, *tile) or broadcasting to it."""

    addresses: Tensor
    inside: Tensor  # whether the element is inside of the array
    indices: tuple[Tensor, ...]  # in the array, by dimension of the tile
    promised: Tensor | None  # False where an element is outside that the kernel promises to be inside


def elements(place: Place, tile: Sequence[int], itemsize: int, inbounds: Sequence[bool]) -> Elements:
    """Address and index of every element of the tiles, those outside of the array too."""
    rank = len(tile)
    addresses = _column(place.origin, rank).expand(place.batch, *tile)
    inside = torch.ones(1, dtype=torch.bool).expand(place.batch, *tile)
    promised: Tensor | None = None
    indices = []
    for dimension, (first, extent, stride) in enumerate(zip(place.firsts, place.shape, place.strides, strict=True)):
        index = _column(first, rank, dimension)
        if not (isinstance(first, Tensor) and first.dim() == 2):
            along = [tile[dimension] if each == dimension else 1 for each in range(rank)]
            index = index + torch.arange(tile[dimension]).view(1, *along)
        indices.append(index)
        addresses = addresses + index * _column(stride, rank) * itemsize
        valid = (index >= 0) & (index < _column(extent, rank))
        inside = inside & valid
        if dimension < len(inbounds) and inbounds[dimension]:
            promised = valid if promised is None else promised & valid
    return Elements(addresses, inside, tuple(indices), promised)


def _column(value: Scalar, rank: int, dimension: int = 0) -> Tensor:
    """A scalar as (b, 1, ..., 1) of rank + 1 dimensions, or a tile (b, n) along `dimension`."""
    tensor = torch.as_tensor(value, dtype=torch.int64)
    if tensor.dim() == 2:
        return tensor.view(len(tensor), *(tensor.shape[1] if each == dimension else 1 for each in range(rank)))
    return tensor.reshape(-1, *(1,) * rank)
