"""Arrays and lists of arrays as values of a kernel, and how its views cut them into tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from typing import TypeAlias

import torch
from torch import Tensor

Scalar: TypeAlias = int | Tensor  # a uniform integer, or one for each block: int32 or int64 of shape (b,)


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """An array in a kernel: where it starts, in bytes, and its shape and strides in elements."""

    address: Scalar
    shape: tuple[Scalar, ...]
    strides: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class ArrayList:
    """A list of arrays of one rank; each item is (address, *shape, *strides)."""

    items: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a view cuts an array into tiles.

    Dimension k of a tile runs along axis order[k] of the array; index i along it starts at element i * steps[k]. Along
    the dimension `sparse` (of a gather/scatter view) the index is a tile of elements' indices instead.
    """

    tile: tuple[int, ...]
    steps: tuple[int, ...]
    order: tuple[int, ...]
    sparse: int | None
    narrow: bool  # the compiler cuts indices to 32 bits
    padding: str  # name of the PaddingMode


def tiling(view_type: Any) -> Tiling:
    """The geometry of a PartitionViewTy, StridedViewTy or GatherScatterViewTy."""
    tile = tuple(view_type.tile_shape)
    sparse = getattr(view_type, "sparse_dim", None)
    steps = (1,) * len(tile) if sparse is not None else tuple(getattr(view_type, "traversal_steps", None) or tile)
    partition = sparse is None and not hasattr(view_type, "traversal_steps")
    return Tiling(
        tile,
        steps,
        tuple(getattr(view_type, "order", range(len(tile)))),
        sparse,
        narrow=not (partition and view_type.array_ty.index_dtype.bitwidth > 32),
        padding=view_type.padding_mode.name,
    )


def scalar(value: Scalar) -> Scalar:
    """An int if the value is uniform and known to be, else int64 of shape (b,)."""
    if not isinstance(value, Tensor):
        return value
    return int(value) if value.numel() == 1 else value.to(torch.int64)
