"""Floating-point arithmetic in the rounding modes of the compiler, each operation rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.rounding import DOWN
from tilewright.interpret.numbers.rounding import FORMATS
from tilewright.interpret.numbers.rounding import NEAREST_EVEN
from tilewright.interpret.numbers.rounding import UP
from tilewright.interpret.numbers.rounding import ZERO
from tilewright.interpret.numbers.rounding import round_to
from tilewright.interpret.numbers.rounding import to_odd
from tilewright.interpret.numbers.rounding import two_product
from tilewright.interpret.numbers.rounding import two_sum

Function = Callable[..., Tensor]

_LEAST_NORMAL = 2.0**-126  # of float32
_TO_NEAREST = (NEAREST_EVEN, "full", "approx")  # the last two may err on the GPU by a few units


def _odd_sum(x: Tensor, y: Tensor) -> Tensor:
    return to_odd(*two_sum(x, y))


def _odd_quotient(x: Tensor, y: Tensor) -> Tensor:
    quotient = x / y
    product, error = two_product(quotient, y)
    rest = (x - product) - error
    return to_odd(quotient, torch.where(y < 0, -rest, rest))


def _root(x: Tensor) -> Tensor:
    """The square root, rounded once: `torch.sqrt` may err by a unit where it calls a library for vectors."""
    if x.dtype.itemsize < 4:
        return _root(x.to(torch.float32)).to(x.dtype)
    with np.errstate(invalid="ignore"):
        return torch.from_numpy(np.asarray(np.sqrt(x.numpy())))


def _odd_root(x: Tensor) -> Tensor:
    root = _root(x)
    product, error = two_product(root, root)
    return to_odd(root, (x - product) - error)


def _odd_fma(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return _odd_sum(x * y, z)  # the product of two float32 is exact in float64


_ODD: dict[str, Function] = {
    "add": _odd_sum,
    "sub": lambda x, y: _odd_sum(x, -y),
    "mul": torch.mul,  # exact in float64
    "truediv": _odd_quotient,
    "sqrt": _odd_root,
    "fma": _odd_fma,
}
_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "truediv": lambda x, y: x / y,
    "fma": lambda x, y, z: x * y + z,
}
_NEAREST: dict[str, Function] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "truediv": torch.div,
    "sqrt": _root,
}


def rounded(name: str, element: Element, mode: str | None, flush_to_zero: bool = False) -> Function:
    """The function of `add`, `sub`, `mul`, `truediv`, `sqrt` or `fma` that rounds once, to float16 ... float64.

    `mode` is the value of a `cuda.tile.RoundingMode`, None for the nearest. Raises KeyError for another name or mode.
    """
    mode = NEAREST_EVEN if mode is None or mode in _TO_NEAREST else mode
    if mode == NEAREST_EVEN and name != "fma":
        function = _NEAREST[name]
    elif element.name == "float64":
        function = _nearest_fma if mode == NEAREST_EVEN else _directed_double(name, mode)
    else:
        function = _once(_ODD[name], element, mode)
    if mode == DOWN and name in ("add", "sub", "fma"):
        function = _with_negative_zeros(name, function)
    return flushing(function) if flush_to_zero else function


def _once(odd: Function, element: Element, mode: str) -> Function:
    """Computed in float64, rounded to odd there unless exact, then rounded to the format."""
    form = FORMATS[element.name]

    def once(*operands: Tensor) -> Tensor:
        exact = odd(*(each.to(torch.float64) for each in operands))
        if mode == NEAREST_EVEN and element.bits == 32:
            return exact.to(torch.float32)
        return round_to(exact, form, mode).to(element.compute)

    return once


def _with_negative_zeros(name: str, function: Function) -> Function:
    """Sums that cancel are -0 when rounded down (IEEE 754-2019, 6.3)."""

    def downwards(*operands: Tensor) -> Tensor:
        result = function(*operands)
        if name == "fma":
            first, second = operands[0].to(torch.float64) * operands[1].to(torch.float64), operands[2]
        else:
            first, second = operands[0], operands[1] if name == "add" else -operands[1]
        cancelled = (first == -second) & (torch.signbit(first) | torch.signbit(second))
        return torch.where(cancelled & (result == 0), -0.0, result)

    return downwards


def flush(x: Tensor) -> Tensor:
    """float32 with subnormal numbers replaced by zeros of their sign."""
    return torch.where(x.abs() < _LEAST_NORMAL, x * 0.0, x)


def flushing(function: Function) -> Function:
    """`function` with subnormal numbers flushed on the way in and out."""
    return lambda *operands: flush(function(*(flush(each) for each in operands)))


def in_float32(function: Function, element: Element) -> Function:
    """`function`, computed in float32 and rounded if the dtype is narrower."""
    if element.bits > 16:
        return function
    return lambda *operands: function(*(each.to(torch.float32) for each in operands)).to(element.compute)


def in_float64(function: Function, element: Element) -> Function:
    """`function`, computed in float64 and rounded, so that the result does not depend on the place in a tile.

    That of float64 itself may differ in the last bit.
    """
    if element.bits == 64:
        return function
    return lambda *operands: function(*(each.to(torch.float64) for each in operands)).to(element.compute)


def _nearest_fma(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """x * y + z in float64, rounded once (Boldo and Melquiond 2008, Fma emulation)."""
    x, y, z = torch.broadcast_tensors(x, y, z)
    product, low = two_product(x, y)
    partial, partial_low = two_sum(z, low)
    total, error = two_sum(product, partial)
    result = total + _odd_sum(partial_low, error)
    zero = (x == 0) | (y == 0)
    safe = torch.isfinite(total) & (zero | (_moderate(x) & _moderate(y) & (_moderate(z) | (z == 0))))
    return result if bool(safe.all()) else _element_by_element("fma", NEAREST_EVEN, (x, y, z))


def _moderate(x: Tensor) -> Tensor:
    """Whether the parts of products of `x` neither over- nor underflow."""
    magnitude = x.abs()
    return (magnitude > 2.0**-400) & (magnitude < 2.0**400)


def _directed_double(name: str, mode: str) -> Function:
    return lambda *operands: _element_by_element(name, mode, torch.broadcast_tensors(*operands))


def _element_by_element(name: str, mode: str, operands: Any) -> Tensor:
    lists = [each.reshape(-1).tolist() for each in operands]
    results = [_exactly(name, mode, each) for each in zip(*lists, strict=True)]
    return torch.tensor(results, dtype=torch.float64).reshape(operands[0].shape)


def _exactly(name: str, mode: str, operands: tuple[float, ...]) -> float:
    """One result in float64, by rational arithmetic."""
    if name == "sqrt":
        return _exact_root(operands[0], mode)
    if not all(map(math.isfinite, operands)) or (name == "truediv" and operands[1] == 0):
        return _special(name, operands)
    exact = _EXACT[name](*map(Fraction, operands))
    if exact == 0:
        return _special(name, operands)
    return _nearest_or_directed(exact, mode)


def _special(name: str, operands: tuple[float, ...]) -> float:
    """Results that are infinite, NaN or zero in any rounding mode; the sign of a zero is that of the nearest mode."""
    tensors = [torch.tensor(each, dtype=torch.float64) for each in operands]
    if name == "fma":
        return float(tensors[0] * tensors[1] + tensors[2])
    return float(_NEAREST[name](*tensors))


def _nearest_or_directed(exact: Fraction, mode: str) -> float:
    try:
        nearest = exact.numerator / exact.denominator  # Python rounds this quotient once, to the nearest
    except OverflowError:
        nearest = -math.inf if exact < 0 else math.inf
    if mode == NEAREST_EVEN or nearest == exact:
        return nearest
    upwards = mode == UP or (mode == ZERO and exact < 0)
    if upwards:
        return math.nextafter(nearest, math.inf) if nearest < exact else nearest
    return math.nextafter(nearest, -math.inf) if nearest > exact else nearest


def _exact_root(x: float, mode: str) -> float:
    if x < 0:
        return math.nan
    root = math.sqrt(x)
    if not math.isfinite(x) or mode == NEAREST_EVEN:
        return root
    square = Fraction(root) ** 2
    if mode == UP:
        return math.nextafter(root, math.inf) if square < Fraction(x) else root
    return math.nextafter(root, 0.0) if square > Fraction(x) else root
