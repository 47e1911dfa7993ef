"""Conversions between dtypes (`tile_astype`), each rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.numbers import minifloats
from tilewright.interpret.numbers.dtypes import FLOAT32
from tilewright.interpret.numbers.dtypes import INT32
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.dtypes import as_tensor
from tilewright.interpret.numbers.dtypes import wrap
from tilewright.interpret.numbers.rounding import FORMATS
from tilewright.interpret.numbers.rounding import NEAREST_EVEN
from tilewright.interpret.numbers.rounding import round_to
from tilewright.interpret.numbers.rounding import to_odd
from tilewright.interpret.numbers.rounding import two_sum
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.lowering import lowers
from tilewright.interpret.translate.operands import element_of

Cast = Callable[[Any], Any]
TileCast = Callable[[Tensor], Tensor]


@lowers("tile_astype", "rounding_mode")
def _astype(op: Any) -> Step:
    mode = getattr(op, "rounding_mode", None)
    return Step(cast(element_of(op.x), element_of(op.result_var), mode.value if mode else NEAREST_EVEN), (op.x,))


def cast(source: Element, target: Element, mode: str = NEAREST_EVEN) -> Cast:
    """The function that converts tiles and uniform integers from `source` to `target`.

    Floats become integers towards zero; what is out of range, which the compiler leaves undefined, as on GPUs:
    saturated, to 16 bits at least and then wrapped to 8, and NaN as 0 or, of or to 64 bits, as the highest bit alone.
    Integers wrap. `mode`, the value of a `cuda.tile.RoundingMode`, is for floats that become floats.
    """
    if not source.is_integer:
        return _from_float(source, target, mode)
    tiles = _from_integer(source, target)
    if not target.is_integer:
        return lambda value: tiles(as_tensor(value, source))
    if target.kind == "b":
        return lambda value: tiles(value) if isinstance(value, Tensor) else value != 0
    return lambda value: tiles(value) if isinstance(value, Tensor) else wrap(int(value), target)


def _from_integer(source: Element, target: Element) -> TileCast:
    if target.kind == "b":
        return lambda x: x != 0
    if target.kind != "f":
        return _between_integers(source, target)
    if source.bits < 64:
        if (target.bits > 16 and target.name in ("float32", "float64")) or target.name == "float16":
            return lambda x: x.to(target.compute)  # exact in float32 up to 2**24, beyond which float16 is infinite
        finish = _from_double(target, NEAREST_EVEN)
        return lambda x: finish(x.to(torch.float64))
    halves = _halves_unsigned if source.kind == "u" else _halves_signed
    if target.name == "float64":
        return lambda x: torch.add(*halves(x))
    finish = _from_double(target, NEAREST_EVEN)
    return lambda x: finish(to_odd(*two_sum(*halves(x))))


def _halves_signed(x: Tensor) -> tuple[Tensor, Tensor]:
    return (x >> 32).to(torch.float64) * 2.0**32, (x & 0xFFFFFFFF).to(torch.float64)


def _halves_unsigned(x: Tensor) -> tuple[Tensor, Tensor]:
    return ((x >> 32) & 0xFFFFFFFF).to(torch.float64) * 2.0**32, (x & 0xFFFFFFFF).to(torch.float64)


def _between_integers(source: Element, target: Element) -> TileCast:
    same = source.compute is target.compute
    if target.storage is target.compute:
        return (lambda x: x) if same else lambda x: x.to(target.compute)
    if source.kind in "bu" and source.bits <= target.bits:
        return (lambda x: x) if same else lambda x: x.to(target.compute)
    return lambda x: x.to(target.compute) & target.highest


def _from_float(source: Element, target: Element, mode: str) -> Cast:
    if source.encoded:
        rest = _from_float(FLOAT32, target, mode)
        return lambda x: rest(minifloats.decode(x, source))
    if target.kind == "b":
        return lambda x: x != 0
    if target.kind != "f":
        return _to_integer(source, target)
    if _is_exact(source, target):
        return lambda x: x.to(target.compute)
    if mode == NEAREST_EVEN and source.name != "float64":
        if target.name == "tfloat32":
            return _nearest_tfloat32
        if not target.encoded:
            return lambda x: x.to(target.compute)
    finish = _from_double(target, mode)
    return lambda x: finish(x.to(torch.float64))


def _is_exact(source: Element, target: Element) -> bool:
    if target.name == "float64":
        return True
    return (
        not target.encoded
        and source.name != "float64"
        and (target.name == "float32" or (target.name == "tfloat32" and source.bits == 16))
    )


def _nearest_tfloat32(x: Tensor) -> Tensor:
    pattern = x.view(torch.int32)
    rounded = (pattern >> 13).bitwise_and_(1).add_(0xFFF).add_(pattern).bitwise_and_(~0x1FFF)
    return torch.where(x == x, rounded.view(torch.float32), x)


def _from_double(target: Element, mode: str) -> TileCast:
    """From float64 to `target`, rounded once."""
    if target.encoded:
        return lambda x: minifloats.encode(x, target, mode)
    if target.name == "float32" and mode == NEAREST_EVEN:
        return lambda x: x.to(torch.float32)
    form = FORMATS[target.name]
    return lambda x: round_to(x, form, mode).to(target.compute)


def _to_integer(source: Element, target: Element) -> TileCast:
    if target.bits == 64:
        saturated = _saturated_uint64 if target.kind == "u" else _saturated_int64
        pattern = -(2**63)
        return lambda x: torch.where(torch.isnan(x), pattern, saturated(x.to(torch.float64)))
    # The GPU converts to 16 bits, then drops the upper half, for 8.
    bits = max(target.bits, 16)
    lowest, highest = (0, (1 << bits) - 1) if target.kind == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    nan = 0 if source.bits < 64 else lowest or 1 << (bits - 1)
    narrow = _between_integers(INT32, target) if target.bits < bits else lambda x: x
    held = torch.int32 if target.bits < bits else target.compute

    def saturate(x: Tensor) -> Tensor:
        return narrow(x.to(torch.float64).nan_to_num(float(nan)).clamp_(lowest, highest).to(held))

    return saturate


def _saturated_int64(x: Tensor) -> Tensor:
    below = x < 2.0**63
    return torch.where(below, torch.where(below, x, 0.0).clamp_(min=-(2.0**63)).to(torch.int64), 2**63 - 1)


def _saturated_uint64(x: Tensor) -> Tensor:
    x = x.clamp(min=0.0)
    low, high = x < 2.0**63, x >= 2.0**64
    value = torch.where(high, 0.0, torch.where(low, x, x - 2.0**64)).to(torch.int64)
    return torch.where(high, -1, value)
