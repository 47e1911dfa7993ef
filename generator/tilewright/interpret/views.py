"""Arrays, lists of arrays and the tiled views of arrays: their values and the geometry that their types fix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from typing import TypeAlias

import torch
from torch import Tensor

from tilewright.interpret.faults import OutOfBounds
from tilewright.interpret.lowering import Step
from tilewright.interpret.lowering import lowers
from tilewright.interpret.run import uniform

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


@lowers("make_tensor_view")
def _make_tensor_view(op: Any) -> Step:
    if hasattr(op, "strides"):
        return Step(ArrayValue, (op.base_ptr, op.shape, op.strides))
    static = tuple(op.result_var.get_type().strides)  # cuda-tile 1.5 has operands for the dynamic strides only

    def make(address: Scalar, shape: tuple[Scalar, ...], dynamic: tuple[Scalar, ...]) -> ArrayValue:
        rest = iter(dynamic)
        return ArrayValue(address, shape, tuple(next(rest) if stride is None else stride for stride in static))

    return Step(make, (op.base_ptr, op.shape, op.dynamic_strides))


@lowers("make_partition_view")
@lowers("make_strided_view")
@lowers("make_gather_scatter_view")
def _make_view(op: Any) -> Step:
    return Step(lambda array: array, (op.array,))


@lowers("make_list_view")
def _make_list_view(op: Any) -> Step:
    return Step(lambda arrays: arrays, (op.base_ptr,))


@lowers("get_array_list_item")
def _get_array_list_item(op: Any) -> Step:
    return Step(list_item, (op.x, op.index))


def list_item(arrays: ArrayList, index: Scalar) -> tuple[int, ...] | int:
    """Address, shape and strides of an array in a list; raises `OutOfBounds`, and `Diverge` if blocks take several."""
    place = uniform(index)
    if 0 <= place < len(arrays.items):
        item = arrays.items[place]
        return item if len(item) > 1 else item[0]
    raise OutOfBounds(
        f"index {place} of a list of {len(arrays.items)} arrays\n"
        "a GPU would read an array from memory behind the list: check the index"
    )


@lowers("num_tiles")
def _num_tiles(op: Any) -> Step:
    geometry = tiling(op.view.get_type())
    return Step(lambda array: num_tiles(geometry, array), (op.view,))


def num_tiles(geometry: Tiling, array: ArrayValue) -> tuple[Scalar, ...] | Scalar:
    """Tiles along each dimension (the last one may reach beyond the array): int32, a tuple unless there is one."""
    counts = tuple(-(-array.shape[axis] // step) for axis, step in zip(geometry.order, geometry.steps, strict=True))
    counts = tuple(each.to(torch.int32) if isinstance(each, Tensor) else each for each in counts)
    return counts[0] if len(counts) == 1 else counts
