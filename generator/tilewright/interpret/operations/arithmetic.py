"""Operations of two and three operands: arithmetic, bits, comparisons and choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.faults import unknown
from tilewright.interpret.numbers import floats
from tilewright.interpret.numbers import integers
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.dtypes import as_tensor
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.lowering import lowers
from tilewright.interpret.translate.operands import element_of
from tilewright.interpret.translate.operands import require_computable

Function = Callable[..., Any]


@lowers("raw_binary_arith", "fn", "rounding_mode", "flush_to_zero", "propagate_nan")
def _binary_arithmetic(op: Any) -> Step:
    element = element_of(op.lhs)
    if element.is_integer:
        function = integers.arithmetic(op.fn, element)
        if function is None:
            raise unknown(f"{op.fn} of {element.name}")
        return Step(function, (op.lhs, op.rhs))
    mode = op.rounding_mode.value if op.rounding_mode else None
    propagate_nan = getattr(op, "propagate_nan", False)
    return Step(float_arithmetic(op.fn, element, mode, op.flush_to_zero, propagate_nan), (op.lhs, op.rhs))


def float_arithmetic(
    name: str,
    element: Element,
    mode: str | None = None,
    flush_to_zero: bool = False,
    propagate_nan: bool = False,
) -> Function:
    """The function of an operation of `raw_binary_arith` on floats; raises `UnsupportedOperation` for another name."""
    require_computable(name, element)
    match name:
        case "add" | "sub" | "mul" | "truediv":
            return floats.rounded(name, element, mode, flush_to_zero)
        case "floordiv":
            divide = floats.rounded("truediv", element, mode, flush_to_zero)
            return lambda x, y: torch.floor(divide(x, y))
        case "min":
            function = torch.minimum if propagate_nan else torch.fmin
            return floats.flushing(function) if flush_to_zero else function
        case "max":
            function = torch.maximum if propagate_nan else torch.fmax
            return floats.flushing(function) if flush_to_zero else function
        case "c_mod":
            return floats.in_float32(torch.fmod, element)
        case "pow":
            return floats.in_float64(torch.pow, element)
        case "atan2":
            return floats.in_float64(torch.atan2, element)
    raise unknown(f"{name} of {element.name}")


@lowers("raw_fpowi")
def _power_of_integer(op: Any) -> Step:
    base, exponent = element_of(op.base), element_of(op.exponent)
    require_computable("a power", base)

    def power(x: Tensor, n: Any) -> Tensor:
        return torch.pow(x.to(torch.float64), as_tensor(n, exponent).to(torch.float64)).to(base.compute)

    return Step(power, (op.base, op.exponent))


@lowers("fma", "rounding_mode", "flush_to_zero")
def _fused_multiply_add(op: Any) -> Step:
    element = element_of(op.result_var)
    require_computable("fma", element)
    mode = op.rounding_mode.value if op.rounding_mode else None
    return Step(floats.rounded("fma", element, mode, op.flush_to_zero), (op.lhs, op.rhs, op.acc))


@lowers("raw_binary_bitwise", "fn")
def _bitwise(op: Any) -> Step:
    return Step(integers.bitwise(op.fn, element_of(op.lhs)), (op.lhs, op.rhs))


@lowers("raw_bitwise_shift", "fn")
def _shift(op: Any) -> Step:
    return Step(integers.shift(op.fn, element_of(op.lhs)), (op.lhs, op.rhs))


@lowers("raw_cmp", "fn")
def _comparison(op: Any) -> Step:
    element = element_of(op.lhs)
    if element.is_integer:
        return Step(integers.comparison(op.fn, element), (op.lhs, op.rhs))
    require_computable("a comparison", element)
    return Step(integers.COMPARISONS[op.fn], (op.lhs, op.rhs))  # != is true of NaN, the others are false


@lowers("raw_where")
def _where(op: Any) -> Step:
    return Step(where(element_of(op.x)), (op.cond, op.x, op.y))


def where(element: Element) -> Function:
    """The function that takes `x` where the condition holds and `y` elsewhere; they may be pointers."""

    def choose(condition: Any, x: Any, y: Any) -> Any:
        if not isinstance(condition, Tensor):
            return x if condition else y
        return torch.where(condition, as_tensor(x, element), as_tensor(y, element))

    return choose
