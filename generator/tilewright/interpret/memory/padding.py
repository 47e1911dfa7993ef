"""What stands in a tile for elements that are not loaded."""

from __future__ import annotations

import math

import torch

from tilewright.interpret.memory.allocations import Undetermined
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.minifloats import MINI_FORMATS
from tilewright.interpret.numbers.minifloats import encode

_DETERMINED = {"ZERO": 0.0, "NEG_ZERO": -0.0, "NAN": math.nan, "POS_INF": math.inf, "NEG_INF": -math.inf}


def padding(mode: str, element: Element) -> dict[Undetermined, float]:
    """The value that pads a tile of a view, by what undetermined elements are in the run.

    `mode` is the name of the `cuda.tile.PaddingMode`. The value is what `torch.full` takes for `element.compute`: the
    bit pattern of a float that torch cannot compute with. Integers are padded by 0 where the mode asks for a float that
    they do not have, which the compiler refuses.
    """
    if mode == "UNDETERMINED":
        return undetermined(element)
    value = _DETERMINED[mode]
    if element.is_integer:
        return dict.fromkeys(Undetermined, 0)
    return dict.fromkeys(Undetermined, _pattern(value, element) if element.encoded else value)


def undetermined(element: Element) -> dict[Undetermined, float]:
    """The value of elements that a load leaves undetermined: 0, 1, -1 or the largest and smallest finite numbers."""
    if element.is_integer:
        return {
            Undetermined.ZERO: 0,
            Undetermined.ONE: 1,
            Undetermined.MINUS_ONE: -1 if element.kind == "i" else 1,
            Undetermined.HIGHEST: -1 if element.name == "uint64" else element.highest,  # tiles hold its bit pattern
            Undetermined.LOWEST: element.lowest,
        }
    largest = _largest(element)
    values = {
        Undetermined.ZERO: 0.0,
        Undetermined.ONE: 1.0,
        Undetermined.MINUS_ONE: -1.0,
        Undetermined.HIGHEST: largest,
        Undetermined.LOWEST: -largest,
    }
    if element.encoded:
        return {each: _pattern(value, element) for each, value in values.items()}
    return values


def _largest(element: Element) -> float:
    if element.encoded:
        form = MINI_FORMATS[element.name]
        return form.number(form.finite - 1)
    return float(torch.finfo(element.compute).max)


def _pattern(value: float, element: Element) -> int:
    """The bit pattern nearest to a value: the largest number for infinity where there is none."""
    form = MINI_FORMATS[element.name]
    if not form.signed and value < 0:
        return 0
    if math.isinf(value):
        return (form.finite if form.infinite else form.finite - 1) | (form.sign if value < 0 else 0)
    return int(encode(torch.tensor(value, dtype=torch.float64), element))
