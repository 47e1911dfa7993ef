"""Floats of 8 and 4 bits: their numbers, and the conversion between bit patterns and numbers."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.rounding import NEAREST_EVEN
from tilewright.interpret.numbers.rounding import UP
from tilewright.interpret.numbers.rounding import ZERO


@dataclass(frozen=True, slots=True)
class MiniFormat:
    """A float of a few bits: `finite` patterns of a sign are numbers; infinity, if any, follows them, then NaN."""

    exponent: int  # bits
    mantissa: int  # bits
    bias: int
    finite: int
    signed: bool = True
    infinite: bool = False
    nan: int | None = None  # the pattern that conversions give for NaN; None if the largest number stands for it
    subnormal: bool = True

    def number(self, code: int) -> float:
        """The number of the pattern `code`, without sign."""
        exponent, fraction = code >> self.mantissa, code & ((1 << self.mantissa) - 1)
        if exponent == 0 and self.subnormal:
            return math.ldexp(fraction, 1 - self.bias - self.mantissa)
        return math.ldexp((1 << self.mantissa) + fraction, exponent - self.bias - self.mantissa)

    @property
    def sign(self) -> int:
        """The pattern of the sign bit, 0 if there is none."""
        return 1 << (self.exponent + self.mantissa) if self.signed else 0


MINI_FORMATS = {
    "float8_e4m3fn": MiniFormat(4, 3, 7, finite=0x7F, nan=0x7F),
    "float8_e5m2": MiniFormat(5, 2, 15, finite=0x7C, infinite=True, nan=0x7F),
    "float8_e8m0fnu": MiniFormat(8, 0, 127, finite=0xFF, signed=False, nan=0xFF, subnormal=False),
    "float8_e5m3fnu": MiniFormat(5, 3, 15, finite=0xFF, signed=False, nan=0xFF),
    "float4_e2m1fn": MiniFormat(2, 1, 1, finite=0x8),
}


@functools.cache
def _decoded(name: str) -> Tensor:
    form = MINI_FORMATS[name]
    values = [form.number(code) for code in range(form.finite)]
    if form.infinite:
        values.append(math.inf)
    if form.signed:
        values += [math.nan] * (form.sign - len(values))
        values += [-value for value in values]
    values += [math.nan] * (256 - len(values))
    return torch.tensor(values, dtype=torch.float32)


def decode(codes: Tensor, element: Element) -> Tensor:
    """The numbers of the patterns `codes` (uint8), as float32: every one is exact."""
    return _decoded(element.name)[codes.to(torch.int64)]


@functools.cache
def _boundaries(name: str, mode: str) -> Tensor:
    """The least magnitude that becomes pattern 1, 2, ... when rounded in `mode`; the last would be too large."""
    form = MINI_FORMATS[name]
    numbers = [form.number(code) for code in range(form.finite + 1)]
    boundaries = []
    for code, (lower, upper) in enumerate(itertools.pairwise(numbers)):
        even = code % 2 == 0 and form.mantissa > 0  # without a mantissa, every number is odd
        boundaries.append(_boundary(lower, upper, mode, even))
    return torch.tensor(boundaries, dtype=torch.float64)


def _boundary(lower: float, upper: float, mode: str, even: bool) -> float:
    if mode == ZERO:
        return upper
    if mode == UP:
        return math.nextafter(lower, math.inf)
    middle = (lower + upper) / 2
    return math.nextafter(middle, math.inf) if even and mode == NEAREST_EVEN else middle


def encode(x: Tensor, element: Element, mode: str = NEAREST_EVEN, *, saturate: bool = True) -> Tensor:
    """The patterns (uint8) of the float64 values `x`, rounded once in `mode`.

    The modes are those that the compiler has: to the nearest and, for formats without a sign, towards zero and up.
    What is too large becomes the largest finite number, infinity too, as in the conversions of the hardware
    (`cvt.satfinite` of PTX); unless `saturate`, it becomes infinite or NaN where the format has that. Formats without
    a sign take the magnitude.
    """
    form = MINI_FORMATS[element.name]
    largest = form.finite - 1
    codes = torch.bucketize(x.abs(), _boundaries(element.name, mode), right=True)
    codes = codes.clamp_(max=largest if saturate or form.nan is None else form.finite)
    if form.sign:
        codes = torch.where(torch.signbit(x), codes | form.sign, codes)
    return torch.where(torch.isnan(x), largest if form.nan is None else form.nan, codes).to(torch.uint8)
