"""Arithmetic, shifts and comparisons of integers: of tiles, which wrap, and of uniform scalars, Python ints."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.dtypes import as_tensor
from tilewright.interpret.numbers.dtypes import wrap

Binary = Callable[[Any, Any], Any]
TileBinary = Callable[[Tensor, Tensor], Tensor]

_SIGN = -(2**63)  # flips the order of uint64 patterns into that of int64


def _both(scalars: Binary, tiles: TileBinary, element: Element) -> Binary:
    """The function that works on Python ints with `scalars` and on the rest with `tiles`."""

    def both(x: Any, y: Any) -> Any:
        if isinstance(x, Tensor):
            return tiles(x, y if isinstance(y, Tensor) else as_tensor(y, element))
        if isinstance(y, Tensor):
            return tiles(as_tensor(x, element), y)
        return scalars(x, y)

    return both


def _wrapping(function: Binary, element: Element) -> Binary:
    lowest, highest = element.lowest, element.highest
    mask = highest if element.compute is not element.storage else None  # of what is held in a wider torch dtype
    plain = element.name != "uint64"

    def wrapping(x: Any, y: Any) -> Any:
        if isinstance(x, Tensor) or isinstance(y, Tensor):
            if not plain:
                x, y = as_tensor(x, element), as_tensor(y, element)
            result = function(x, y)
            return result if mask is None else result & mask
        result = function(x, y)
        return result if lowest <= result <= highest else wrap(result, element)

    return wrapping


def _divide_scalars(x: int, y: int, element: Element) -> tuple[int, int]:
    """Quotient towards zero and the rest; as on NVIDIA GPUs, all ones for a divisor of zero."""
    if y == 0:
        return wrap(-1, element), x
    quotient = abs(x) // abs(y)
    if (x < 0) != (y < 0):
        quotient = -quotient
    return wrap(quotient, element), x - quotient * y


def _divide_tiles(x: Tensor, y: Tensor, element: Element) -> tuple[Tensor, Tensor]:
    """The same of tiles."""
    zero = y == 0
    if element.name == "uint64":
        quotient = _divide_uint64(x, torch.where(zero, 1, y))
    elif element.kind == "u":
        quotient = torch.div(x, torch.where(zero, 1, y), rounding_mode="trunc")
    else:  # the least number divided by -1 is beyond the range, which traps on the CPU
        minus = y == -1
        quotient = torch.div(x, torch.where(zero | minus, 1, y), rounding_mode="trunc")
        quotient = torch.where(minus, -x, quotient)
    remainder = x - quotient * y
    ones = wrap(-1, element) if element.name != "uint64" else -1
    return torch.where(zero, ones, quotient), remainder


def _divide_uint64(x: Tensor, y: Tensor) -> Tensor:
    """Quotient of patterns of uint64, where y is not 0 (Warren, Hacker's Delight, 9-3)."""
    estimate = torch.div((x >> 1) & (2**63 - 1), torch.where(y < 0, 1, y), rounding_mode="trunc") << 1
    rest = x - estimate * y
    estimate = estimate + ((rest ^ _SIGN) >= (y ^ _SIGN)).to(torch.int64)
    return torch.where(y < 0, ((x ^ _SIGN) >= (y ^ _SIGN)).to(torch.int64), estimate)


def _rounded_division(towards: int, element: Element) -> Binary:
    """Division rounded down (`towards` -1, of signed integers), to zero (0) or up (1)."""
    mode = "floor" if towards < 0 else "trunc"

    def correction(remainder: Any, y: Any) -> Any:
        inexact = remainder != 0
        if element.kind == "u":
            return inexact
        opposed = (remainder ^ y) < 0  # the exact quotient is negative: it was rounded up
        return inexact & (opposed == (towards < 0))

    def scalars(x: int, y: int) -> int:
        quotient, remainder = _divide_scalars(x, y, element)
        return wrap(quotient + towards * correction(remainder, y), element) if towards else quotient

    def tiles(x: Tensor, y: Tensor) -> Tensor:
        if towards <= 0 and _is_plain(y, element):
            return torch.div(x, y, rounding_mode=mode)
        quotient, remainder = _divide_tiles(x, y, element)
        if not towards:
            return quotient
        rounded = quotient + towards * correction(remainder, y).to(quotient.dtype)
        return rounded if element.storage is element.compute else rounded & element.highest

    return _both(scalars, tiles, element)


def _is_plain(divisor: Tensor, element: Element) -> bool:
    """Whether torch divides by these numbers as GPUs do, being positive: the usual case."""
    return element.name != "uint64" and int(divisor.min()) > 0


def _remainder(element: Element) -> Binary:
    ones = wrap(-1, element)
    pattern = as_tensor(ones, element)

    def tiles(x: Tensor, y: Tensor) -> Tensor:
        if _is_plain(y, element):
            return torch.fmod(x, y)
        return torch.where(y == 0, pattern, _divide_tiles(x, y, element)[1])

    return _both(lambda x, y: _divide_scalars(x, y, element)[1] if y else ones, tiles, element)


def _extremum(scalars: Binary, tiles: TileBinary, element: Element) -> Binary:
    if element.name == "uint64":
        return _both(scalars, lambda x, y: tiles(x ^ _SIGN, y ^ _SIGN) ^ _SIGN, element)
    return _both(scalars, tiles, element)


def arithmetic(name: str, element: Element) -> Binary | None:
    """The function of the operation `name` of `raw_binary_arith`, None if there is none for integers.

    Results wrap. Division by zero, which the compiler leaves undefined, gives what GPUs do: all ones, rounded, and all
    ones as remainder.
    """
    match name:
        case "add":
            return _wrapping(operator.add, element)
        case "sub":
            return _wrapping(operator.sub, element)
        case "mul":
            return _wrapping(operator.mul, element)
        case "floordiv" if element.kind != "u":  # which the compiler has for signed integers alone
            return _rounded_division(-1, element)
        case "truncdiv":
            return _rounded_division(0, element)
        case "cdiv":
            return _rounded_division(1, element)
        case "c_mod":
            return _remainder(element)
        case "min":
            return _extremum(min, torch.minimum, element)
        case "max":
            return _extremum(max, torch.maximum, element)
    return None


def bitwise(name: str, element: Element) -> Binary:
    """The function of `and_`, `or_` or `xor`, for integers and bools; raises KeyError for another name."""
    function = {"and_": operator.and_, "or_": operator.or_, "xor": operator.xor}[name]
    if element.name == "uint64":
        return _both(function, function, element)
    return function


def shift(name: str, element: Element) -> Binary:
    """The function of `lshift` or `rshift`; raises KeyError for another name.

    Counts are unsigned. From the width on they shift everything out, as the instructions of the GPU do.
    """
    bits = element.bits
    left = {"lshift": True, "rshift": False}[name]

    def scalars(x: int, y: int) -> int:
        count = y if 0 <= y < bits else bits
        return wrap(x << count, element) if left else x >> count

    if left and element.storage is not element.compute:
        return _both(scalars, lambda x, y: (x << y) & element.highest, element)
    if left:
        return _both(scalars, torch.bitwise_left_shift, element)
    return _both(scalars, _shift_right_uint64 if element.name == "uint64" else torch.bitwise_right_shift, element)


def _shift_right_uint64(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(y == 0, x, ((x >> 1) & (2**63 - 1)) >> (y - 1))


COMPARISONS: dict[str, Binary] = {each: getattr(operator, each) for each in ("eq", "ne", "lt", "le", "gt", "ge")}


def comparison(name: str, element: Element) -> Binary:
    """The function of a comparison of integers or bools; raises KeyError for another name."""
    function = COMPARISONS[name]
    if element.name != "uint64":
        return function
    if name in ("eq", "ne"):
        return _both(function, function, element)
    return _both(function, lambda x, y: function(x ^ _SIGN, y ^ _SIGN), element)


def negative(element: Element) -> Callable[[Any], Any]:
    """The function that negates, wrapping."""
    subtract = _wrapping(operator.sub, element)
    return lambda x: subtract(0, x)


def absolute(element: Element) -> Callable[[Any], Any]:
    """The function that takes magnitudes; the least number stays itself.

    The compiler has one operation for all integers, so that unsigned ones from the middle of the range on are taken
    for negative: 200 of uint8 becomes 56.
    """
    if element.kind == "b":
        return lambda x: x
    if element.name == "uint64":
        return lambda x: torch.abs(x) if isinstance(x, Tensor) else min(x, 2**64 - x)
    if element.kind == "i":
        return lambda x: torch.abs(x) if isinstance(x, Tensor) else wrap(abs(x), element)
    subtract = _wrapping(operator.sub, element)
    return lambda x: torch.minimum(x, subtract(0, x)) if isinstance(x, Tensor) else min(x, subtract(0, x))


def invert(element: Element) -> Callable[[Any], Any]:
    """The function that flips every bit, or the truth of bools."""
    if element.kind == "b":
        return lambda x: torch.logical_not(x) if isinstance(x, Tensor) else not x
    if element.kind == "i":
        return lambda x: ~x
    every = as_tensor(element.highest, element)
    return lambda x: x ^ every if isinstance(x, Tensor) else x ^ element.highest
