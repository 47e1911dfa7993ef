"""Views of arrays and of lists of arrays: made, counted and indexed, without an access to memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.faults import OutOfBounds
from tilewright.interpret.memory.arrays import ArrayList
from tilewright.interpret.memory.arrays import ArrayValue
from tilewright.interpret.memory.arrays import Scalar
from tilewright.interpret.memory.arrays import Tiling
from tilewright.interpret.memory.arrays import tiling
from tilewright.interpret.run import uniform
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.lowering import lowers


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
