"""Pointers: their arithmetic, loads and stores through them, and what kernels assume about integers."""

from __future__ import annotations

from typing import Any

import torch
from cuda.tile._datatype import PointerInfo
from torch import Tensor

from tilewright.interpret.memory import access
from tilewright.interpret.memory.access import Mask
from tilewright.interpret.memory.access import Site
from tilewright.interpret.memory.arrays import Scalar
from tilewright.interpret.memory.padding import undetermined
from tilewright.interpret.numbers.dtypes import INT64
from tilewright.interpret.numbers.dtypes import as_tensor
from tilewright.interpret.numbers.dtypes import element
from tilewright.interpret.numbers.dtypes import to_storage
from tilewright.interpret.numbers.dtypes import wrap
from tilewright.interpret.run import Run
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.lowering import lowers
from tilewright.interpret.translate.operands import shape_of


def pointee(pointer: Any) -> Any:
    """The dtype of cuda.tile that a variable of pointers points to."""
    return PointerInfo(pointer.get_type().dtype).pointee_dtype


@lowers("load_pointer", "latency")
def _load_pointer(op: Any) -> Step:
    site = access.site(op, op.pointer, pointee(op.pointer))
    shape = shape_of(op.pointer)
    return Step(
        lambda run, pointer, mask, padding: load_pointer(site, shape, run, pointer, mask, padding),
        (op.pointer, op.mask, op.padding_value),
        needs_run=True,
    )


def load_pointer(
    site: Site, shape: tuple[int, ...], run: Run, pointer: Scalar, mask: Mask, padding: Tensor | int | None
) -> Tensor | int:
    """Elements (b, *shape) at the addresses; where the mask is False, the padding, undetermined without one."""
    held = site.element
    if padding is None:
        fill = torch.full((1,), undetermined(held)[run.memory.undetermined], dtype=held.compute)
    else:
        fill = as_tensor(padding, held)
    tile = access.load_elements(run, site, access.tile_of(pointer), mask, fill, padding is None)
    return access.result(tile, held, shape)


@lowers("store_pointer", "latency")
def _store_pointer(op: Any) -> Step:
    site = access.site(op, op.pointer, pointee(op.pointer))
    return Step(
        lambda run, pointer, value, mask: store_pointer(site, run, pointer, value, mask),
        (op.pointer, op.value, op.mask),
        needs_run=True,
    )


def store_pointer(site: Site, run: Run, pointer: Scalar, value: Tensor | int, mask: Mask) -> None:
    """Write elements (b, *shape) at the addresses where the mask is True."""
    raw = to_storage(as_tensor(value, site.element), site.element)
    access.store_elements(run, site, access.tile_of(pointer), mask, raw)


@lowers("pointer_offset")
def _pointer_offset(op: Any) -> Step:
    size = element(pointee(op.pointer)).itemsize
    return Step(lambda pointer, offset: offset_pointer(pointer, offset, size), (op.pointer, op.offset))


def offset_pointer(pointer: Scalar, offset: Scalar, itemsize: int) -> Scalar:
    """The address `offset` elements (of any integer dtype) behind; wraps around as 64-bit addresses do."""
    if isinstance(offset, Tensor):
        return pointer + offset.to(torch.int64) * itemsize
    distance = wrap(offset * itemsize, INT64)
    return pointer + distance if isinstance(pointer, Tensor) else wrap(pointer + distance, INT64)


@lowers("reinterpret_pointer")
@lowers("address_space_cast")
@lowers("foreign_pointer_cast")
def _same_address(op: Any) -> Step:
    return Step(lambda pointer: pointer, (op.pointer,))


@lowers("assume_div_by", "divisor")
def _assume_div_by(op: Any) -> Step:
    divisor = op.divisor
    return Step(lambda run, x: assume_divisible(run, x, divisor), (op.x,), needs_run=True)


def assume_divisible(run: Run, value: Scalar, divisor: int) -> Scalar:
    """The value itself, which the kernel promises to be a multiple of `divisor`; tested in checking mode."""
    if run.checker is not None:
        held = torch.as_tensor(value)
        run.checker.assume(value, held % divisor == 0, f"a multiple of {divisor}")
    return value


@lowers("assume_bounded", "lower_bound", "upper_bound")
def _assume_bounded(op: Any) -> Step:
    lowest, highest = op.lower_bound, op.upper_bound
    return Step(lambda run, x: assume_bounded(run, x, lowest, highest), (op.x,), needs_run=True)


def assume_bounded(run: Run, value: Scalar, lowest: int | None, highest: int | None) -> Scalar:
    """The value itself, which the kernel promises to be within the bounds; tested in checking mode."""
    if run.checker is not None:
        held = torch.as_tensor(value)
        if lowest is not None:
            run.checker.assume(value, held >= lowest, f"at least {lowest}")
        if highest is not None:
            run.checker.assume(value, held <= highest, f"at most {highest}")
    return value
