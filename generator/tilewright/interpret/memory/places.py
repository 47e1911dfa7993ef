"""Where the arrays of a launch lie, and how an address is told by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Extent:
    """Where an array that was passed lies; shape and strides are in elements."""

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def end(self) -> int:
        """Address behind the last element; the own address of an array without elements."""
        if 0 in self.shape:
            return self.address
        last = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return self.address + (last + 1) * self.itemsize


def place_of(address: int, extents: Iterable[Extent]) -> str:
    """Where an address is, relative to the nearest array."""

    def distance(extent: Extent) -> int:
        return max(extent.address - address, address - extent.end + 1, 0)

    nearest = min(extents, key=distance, default=None)
    if nearest is None:
        return "in a launch without arrays"
    array = f"{nearest.name} of shape {nearest.shape}"
    if address < nearest.address:
        return f"{nearest.address - address} bytes before {array}"
    if address >= nearest.end:
        return f"{address - nearest.end} bytes behind the end of {array}"
    return f"{address - nearest.address} bytes into {array}"
