"""Products of matrices (`tile_mma`, `tile_mma_scaled`), added to an accumulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.numbers import minifloats
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.lowering import lowers
from tilewright.interpret.translate.operands import element_of
from tilewright.interpret.translate.operands import shape_of

_EXACT_IN_FLOAT32 = 2**24


@lowers("tile_mma", "use_fast_acc")
def _mma(op: Any) -> Step:
    depth = shape_of(op.x)[-1]
    function = multiply_add(element_of(op.x), element_of(op.y), element_of(op.acc), depth)
    return Step(function, (op.x, op.y, op.acc))


def multiply_add(x: Element, y: Element, accumulator: Element, depth: int) -> Callable[..., Tensor]:
    """The function that returns x @ y + accumulator, for matrices of `depth` columns and rows.

    Products of floats are summed in float32 (float64 those of float64) and rounded once to the accumulator's dtype: a
    GPU may round more often and in another order, `use_fast_acc` or not. Those of integers are exact, and wrap.
    """
    if x.is_integer:
        return _integer(x, y, depth)
    precise = torch.float64 if x.bits == 64 else torch.float32

    def float_product(left: Tensor, right: Tensor, total: Tensor) -> Tensor:
        product = torch.matmul(_numbers(left, x, precise), _numbers(right, y, precise))
        return (product + total.to(precise)).to(accumulator.compute)

    return float_product


def _numbers(tile: Tensor, element: Element, dtype: torch.dtype) -> Tensor:
    return (minifloats.decode(tile, element) if element.encoded else tile).to(dtype)


def _integer(x: Element, y: Element, depth: int) -> Callable[..., Tensor]:
    largest = depth * max(-x.lowest, x.highest) * max(-y.lowest, y.highest)
    exact = torch.float32 if largest <= _EXACT_IN_FLOAT32 else torch.float64

    def integer_product(left: Tensor, right: Tensor, total: Tensor) -> Tensor:
        return torch.matmul(left.to(exact), right.to(exact)).to(torch.int64).to(torch.int32) + total

    return integer_product


@lowers("tile_mma_scaled")
def _mma_scaled(op: Any) -> Step:
    elements = tuple(element_of(each) for each in (op.x, op.x_scale, op.y, op.y_scale))
    return Step(multiply_add_scaled(*elements), (op.x, op.x_scale, op.y, op.y_scale, op.acc))


def multiply_add_scaled(x: Element, x_scale: Element, y: Element, y_scale: Element) -> Callable[..., Tensor]:
    """The function of `mma_scaled`: each scale holds for as many neighbours along K as its shape says.

    It is computed in float64, where products of scaled numbers are exact, and rounded once to float32.
    """

    def scaled_product(left: Tensor, left_scale: Tensor, right: Tensor, right_scale: Tensor, total: Tensor) -> Tensor:
        product = torch.matmul(
            _numbers(left, x, torch.float64) * _spread(_numbers(left_scale, x_scale, torch.float64), left, -1),
            _numbers(right, y, torch.float64) * _spread(_numbers(right_scale, y_scale, torch.float64), right, -2),
        )
        return (product + total.to(torch.float64)).to(torch.float32)

    return scaled_product


def _spread(scale: Tensor, tile: Tensor, axis: int) -> Tensor:
    return scale.repeat_interleave(tile.shape[axis] // scale.shape[axis], axis)
