"""Operations of one operand (`unaryop`): the functions of mathematics, signs and rounding to integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.faults import unknown
from tilewright.interpret.numbers import floats
from tilewright.interpret.numbers import integers
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.lowering import lowers
from tilewright.interpret.translate.operands import element_of
from tilewright.interpret.translate.operands import require_computable

Unary = Callable[[Any], Any]

_EXACT: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": torch.abs,
    "neg": torch.neg,
    "floor": torch.floor,
    "ceil": torch.ceil,
}
_ROUNDED: dict[str, Callable[[Tensor], Tensor]] = {
    each: getattr(torch, each)
    for each in ("exp", "exp2", "log", "log2", "sin", "cos", "tan", "sinh", "cosh", "tanh", "rsqrt")
}
# torch takes another algorithm, which rounds differently, for elements that do not fill a vector of the processor.
_BY_PLACE = ("exp2", "sinh", "cosh")


@lowers("unaryop", "fn", "rounding_mode", "flush_to_zero")
def _unary(op: Any) -> Step:
    element = element_of(op.operand)
    mode = op.rounding_mode.value if op.rounding_mode else None
    function = unary(op.fn, element, mode, op.flush_to_zero)
    return Step(function, (op.operand,))


def unary(name: str, element: Element, mode: str | None = None, flush_to_zero: bool = False) -> Unary:
    """The function `name` of the compiler's `unaryop` for a dtype.

    Of float16 and bfloat16 it is that of a wider float, rounded. Modes other than the nearest are known for `sqrt`
    alone, as in the compiler ("full" and "approx", which may err on the GPU, are computed as the nearest). Raises
    `UnsupportedOperation` for what the compiler has no such operation for.
    """
    if element.is_integer:
        return _of_integers(name, element)
    require_computable(name, element)
    if name in _EXACT:
        return _EXACT[name]
    if name == "sqrt":
        return floats.rounded(name, element, mode, flush_to_zero)
    if name not in _ROUNDED:
        raise unknown(f"{name} of {element.name}")
    function = (floats.in_float64 if name in _BY_PLACE else floats.in_float32)(_ROUNDED[name], element)
    return floats.flushing(function) if flush_to_zero else function


def _of_integers(name: str, element: Element) -> Unary:
    match name:
        case "abs":
            return integers.absolute(element)
        case "neg":
            return integers.negative(element)
        case "invert" | "bitwise_not":
            return integers.invert(element)
    raise unknown(f"{name} of {element.name}")
