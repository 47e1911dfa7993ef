"""Report arithmetic of indices that overflows."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.check.dataflow import Dataflow
from tilewright.interpret.numbers.dtypes import INT64
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.dtypes import as_tensor
from tilewright.interpret.numbers.dtypes import element
from tilewright.interpret.run import Run
from tilewright.interpret.translate.lowering import Step

_FUNCTIONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("+", operator.add),
    "sub": ("-", operator.sub),
    "mul": ("*", operator.mul),
}


def watched(body: Any) -> Callable[[Any, Step], Step]:
    """What makes the steps of a kernel report overflows of its index arithmetic in checking mode."""
    names = Dataflow(body).index_arithmetic()

    def watch(op: Any, step: Step) -> Step:
        if not any(variable.name in names for variable in op.result_vars):
            return step
        held = element(op.result_var.get_type().dtype)
        function, fn = step.function, op.fn

        def compute(run: Run, lhs: Tensor | int, rhs: Tensor | int) -> Any:
            if run.checker is not None:
                found = first_overflow(fn, lhs, rhs, held)
                if found is not None:
                    run.checker.overflow(found, held.name)
            return function(lhs, rhs)

        return Step(compute, step.operands, needs_run=True)

    return watch


def first_overflow(fn: str, lhs: Tensor | int, rhs: Tensor | int, held: Element) -> str | None:
    """The first operation of two tiles of signed integers whose exact result is out of range, as text."""
    symbol, function = _FUNCTIONS[fn]
    if isinstance(lhs, int) and isinstance(rhs, int):
        return None if held.lowest <= function(lhs, rhs) <= held.highest else f"{lhs} {symbol} {rhs}"
    x, y = torch.broadcast_tensors(as_tensor(lhs, held), as_tensor(rhs, held))
    if held.bits < INT64.bits:
        exact = function(x.to(torch.int64), y.to(torch.int64))
        out = (exact < held.lowest) | (exact > held.highest)
    else:
        # Numbers near the bound are counted as within, where float64 does not tell.
        out = function(x.to(torch.float64), y.to(torch.float64)).abs() > 2.0**63
    if not bool(out.any()):
        return None
    return f"{int(x[out][0])} {symbol} {int(y[out][0])}"
