"""Operations that make values out of nothing, or leave them as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.numbers import minifloats
from tilewright.interpret.numbers.dtypes import FLOAT64
from tilewright.interpret.numbers.dtypes import INT64
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.dtypes import as_tensor
from tilewright.interpret.numbers.dtypes import wrap
from tilewright.interpret.operations.casts import cast
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.lowering import lowers
from tilewright.interpret.translate.operands import element_of
from tilewright.interpret.translate.operands import is_tile
from tilewright.interpret.translate.operands import shape_of


@lowers("typed_const", "value")
def _constant(op: Any) -> Step:
    return Step(_always(_value(op)), ())


def _value(op: Any) -> Any:
    """The value of a constant; of what is no tile, such as a dtype or a string, itself."""
    if not is_tile(op.result_var):
        return op.value
    return constant(op.value, element_of(op.result_var), shape_of(op.result_var))


def _always(value: Any) -> Any:
    return lambda: value


def constant(value: Any, element: Element, shape: tuple[int, ...] = ()) -> Any:
    """A number, or nested tuples of numbers, as what a tile of `shape` holds at run time.

    Floats are rounded to the nearest once; too large ones become infinite, NaN or the largest, as in the compiler.
    """
    numbers = list(_flat(value))
    if shape == () and element.is_integer:
        return wrap(int(numbers[0]), element) if element.kind != "b" else bool(numbers[0])
    if element.is_integer:
        tile = torch.cat([as_tensor(wrap(int(each), element), element) for each in numbers])
    else:
        tile = _floats([float(each) for each in numbers], element)
    if len(numbers) == 1:
        return tile.expand((1, *shape)).contiguous()
    return tile.reshape(1, *shape)


def _flat(value: Any) -> Iterator[Any]:
    if not isinstance(value, tuple):
        yield value
        return
    for each in value:
        yield from _flat(each)


def _floats(numbers: list[float], element: Element) -> Tensor:
    exact = torch.tensor(numbers, dtype=torch.float64)
    if element.encoded:
        return minifloats.encode(exact, element, saturate=False)
    return cast(FLOAT64, element)(exact) if element is not FLOAT64 else exact


@lowers("tile_arange")
def _arange(op: Any) -> Step:
    (size,) = shape_of(op.result_var)
    element = element_of(op.result_var)
    counted = torch.arange(size)[None]
    return Step(_always(counted if element is INT64 else cast(INT64, element)(counted)), ())


@lowers("make_dummy")
def _dummy(op: Any) -> Step:
    if not is_tile(op.result_var):
        return Step(_always(None), ())
    return Step(_always(constant(0, element_of(op.result_var), shape_of(op.result_var))), ())


@lowers("assign")
def _assign(op: Any) -> Step:
    return Step(lambda value: value, (op.value,))
