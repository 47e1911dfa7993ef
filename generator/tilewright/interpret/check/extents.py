"""Whether addresses are elements of an array, and of which index."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tilewright.interpret.memory.places import Extent

BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # integers of a size, to compare bit for bit


def contains(extent: Extent, addresses: Tensor) -> Tensor:
    """Whether an element of the array is at each of the addresses.

    Elements of arrays that overlap themselves in other ways than by a stride of 0 count as all that is between the
    first and the last.
    """
    offsets = addresses - extent.address
    between = (offsets >= 0) & (addresses < extent.end) & (offsets % extent.itemsize == 0)
    axes = _axes(extent)
    if math.prod(size for size, _ in axes) * extent.itemsize == extent.end - extent.address or _overlaps(extent):
        return between
    rest = offsets // extent.itemsize
    for size, stride in axes:
        along = rest // stride
        between = between & (along < size)
        rest = rest - along * stride
    return between & (rest == 0)


def index_of(extent: Extent, address: int) -> tuple[int, ...]:
    """Index of the element at an address; that of an element outside exceeds the shape, or is negative."""
    rank = len(extent.shape)
    telling = [axis for axis in range(rank) if extent.shape[axis] != 1 and extent.strides[axis] != 0]
    index = [0] * rank
    rest = (address - extent.address) // extent.itemsize
    for axis in sorted(telling, key=lambda axis: extent.strides[axis], reverse=True) or range(rank)[-1:]:
        index[axis], rest = divmod(rest, extent.strides[axis] or 1)
    return tuple(index)


def elements_of(extent: Extent, memory: Tensor, base: int, dtype: torch.dtype) -> Tensor:
    """The array as `dtype` (of its size), in a copy of the memory (uint8) from address `base` on."""
    flat = memory[: len(memory) // dtype.itemsize * dtype.itemsize].view(dtype)
    return flat.as_strided(extent.shape, extent.strides, (extent.address - base) // dtype.itemsize)


def _axes(extent: Extent) -> list[tuple[int, int]]:
    """Size and stride of each dimension that has several elements at several places, the largest stride first."""
    axes = [each for each in zip(extent.shape, extent.strides, strict=True) if each[0] != 1 and each[1] != 0]
    return sorted(axes, key=lambda axis: axis[1], reverse=True)


def _overlaps(extent: Extent) -> bool:
    reach = 0
    for size, stride in reversed(_axes(extent)):
        if stride <= reach:
            return True
        reach += (size - 1) * stride
    return False
