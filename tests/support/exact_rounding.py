"""Rounding to the formats of floats by rational arithmetic, for tests."""

import math
from fractions import Fraction

import numpy as np
import torch

# bits of the mantissa, least exponent, largest finite number, whether there are subnormal numbers
FORMATS = {
    "float16": (10, -14, 65504.0, True),
    "bfloat16": (7, -126, float(torch.finfo(torch.bfloat16).max), True),
    "tfloat32": (10, -126, (2 - 2.0**-10) * 2.0**127, True),
    "float32": (23, -126, float(torch.finfo(torch.float32).max), True),
    "float64": (52, -1022, float(np.finfo(np.float64).max), True),
    "float8_e4m3fn": (3, -6, 448.0, True),
    "float8_e5m2": (2, -14, 57344.0, True),
    "float8_e5m3fnu": (3, -14, 114688.0, True),
    "float8_e8m0fnu": (0, -127, 2.0**127, False),
    "float4_e2m1fn": (1, 0, 6.0, True),
}


def rounded(value: Fraction, name: str, mode: str) -> float:
    """The finite `value` in a format; those of 8 and 4 bits saturate, those without a sign take magnitudes."""
    mantissa, least, largest, subnormal = FORMATS[name]
    if name.endswith("fnu"):
        value = abs(value)
    magnitude = abs(value)
    if magnitude == 0 and subnormal:
        return 0.0
    if magnitude < Fraction(2) ** least and not subnormal:
        return 2.0**least
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, least) - mantissa)
    whole, rest = divmod(magnitude, unit)
    away = {
        "nearest_even": rest * 2 > unit or (rest * 2 == unit and whole % 2 == 1),
        "nearest_away": rest * 2 >= unit,
        "zero": False,
        "negative_inf": rest > 0 and value < 0,
        "positive_inf": rest > 0 and value > 0,
    }[mode]
    result = (whole + away) * unit
    if result > Fraction(largest):
        finite = mode == "zero" or mode == ("negative_inf" if value > 0 else "positive_inf")
        result = largest if finite or name.startswith(("float8", "float4")) else math.inf
    return -float(result) if value < 0 else float(result)
