"""Rounding of float64 values to the formats of narrower floats, once, in any rounding mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

NEAREST_EVEN, NEAREST_AWAY, ZERO, DOWN, UP = "nearest_even", "nearest_away", "zero", "negative_inf", "positive_inf"


@dataclass(frozen=True, slots=True)
class Format:
    """A binary float with `mantissa` explicit bits; normal numbers lie in [2**least, 2**(most + 1))."""

    mantissa: int
    least: int
    most: int

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return float((2 - 2.0**-self.mantissa) * 2.0**self.most)


FORMATS = {
    "float16": Format(10, -14, 15),
    "bfloat16": Format(7, -126, 127),
    "tfloat32": Format(10, -126, 127),
    "float32": Format(23, -126, 127),
}


def _nearest_away(x: Tensor) -> Tensor:
    whole = torch.trunc(x)
    return torch.where((x - whole).abs() >= 0.5, whole + torch.sign(x), whole)


TO_INTEGER: dict[str, Callable[[Tensor], Tensor]] = {
    NEAREST_EVEN: torch.round,
    NEAREST_AWAY: _nearest_away,
    ZERO: torch.trunc,
    DOWN: torch.floor,
    UP: torch.ceil,
}


def _power_of_two(exponent: Tensor) -> Tensor:
    """2**exponent in float64 for int64 exponents of normal numbers; `torch.ldexp` would go through float32."""
    return ((exponent + 1023) << 52).view(torch.float64)


def round_to(x: Tensor, form: Format, mode: str) -> Tensor:
    """The float64 values `x` rounded to the numbers of `form`, as float64.

    Values beyond the largest number become infinite or the largest, as IEEE 754 says for the mode.
    """
    _, exponent = torch.frexp(x)
    exponent = exponent.to(torch.int64).masked_fill_(~torch.isfinite(x), 0)
    unit = (exponent - 1).clamp_(min=form.least) - form.mantissa
    rounded = TO_INTEGER[mode](x * _power_of_two(-unit)) * _power_of_two(unit)
    return _overflow(rounded, x, form.largest, mode)


def _overflow(rounded: Tensor, x: Tensor, largest: float, mode: str) -> Tensor:
    if mode in (NEAREST_EVEN, NEAREST_AWAY):
        return torch.where(rounded.abs() > largest, rounded * torch.inf, rounded)
    below = torch.isfinite(x)
    if mode in (ZERO, DOWN):
        rounded = torch.where(below & (rounded > largest), largest, rounded)
    else:
        rounded = torch.where(below & (rounded > largest), torch.inf, rounded)
    if mode in (ZERO, UP):
        return torch.where(below & (rounded < -largest), -largest, rounded)
    return torch.where(below & (rounded < -largest), -torch.inf, rounded)


def two_sum(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The rounded sum and its error, which are exact together (Knuth, The Art of Computer Programming 2, 4.2.2)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def two_product(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The rounded product and its error, exact together unless a part over- or underflows (Dekker 1971, Veltkamp)."""
    product = x * y
    x_high, y_high = _high_half(x), _high_half(y)
    x_low, y_low = x - x_high, y - y_high
    return product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


def _high_half(x: Tensor) -> Tensor:
    scaled = x * 134217729.0  # 2**27 + 1: halves the 53 bits
    return scaled - (scaled - x)


def to_odd(nearest: Tensor, error: Tensor) -> Tensor:
    """`nearest + error` rounded to odd in float64, given the nearest float64 and the sign of the error.

    What is rounded to odd can be rounded again, in any mode, to two bits less, as if it were exact (Boldo and
    Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd, 2008).
    """
    pattern = nearest.view(torch.int64)
    towards_zero = (error > 0) ^ (nearest > 0)
    step = torch.where(towards_zero, -1, 1)
    inexact = (error != 0) & (pattern & 1 == 0) & torch.isfinite(nearest) & torch.isfinite(error)
    return torch.where(inexact, pattern + step, pattern).view(torch.float64)
