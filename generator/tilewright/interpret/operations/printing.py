"""Print from kernels as C's printf does; a tile is printed as nested lists of its formatted elements."""

import math
import re
from collections.abc import Callable
from typing import Any

import torch

from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.minifloats import decode
from tilewright.interpret.run import Run
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.lowering import lowers
from tilewright.interpret.translate.operands import element_of

_CONVERSION = re.compile(r"%(?:%|([ #0+-]?)(\d*)(\.\d+)?(hh|h|ll|l)?([diuoxXeEfFgGaA]))")
_BITS = {"hh": 8, "h": 16, "": 32, "l": 64, "ll": 64}

Formatter = Callable[[Any], str]


@lowers("tile_printf", "format")
def _printf(op: Any) -> Step:
    text, formatters = parse(op.format)
    elements = [element_of(operand) for operand in op.args]

    def printf(run: Run, values: tuple[Any, ...]) -> None:
        numbers = map(_numbers, values, elements)
        run.output(text % tuple(map(_nested, numbers, formatters)))

    return Step(printf, (op.args,), needs_run=True)


def parse(c_format: str) -> tuple[str, list[Formatter]]:
    """A format of C as one of Python with `%s` for each conversion, and what formats a number for each of them."""
    formatters: list[Formatter] = []

    def replace(conversion: re.Match[str]) -> str:
        flags, width, precision, length, kind = conversion.groups(default="")
        if not kind:
            return "%%"
        formatters.append(_formatter(flags, width, precision, _BITS[length], kind))
        return "%s"

    return _CONVERSION.sub(replace, c_format), formatters


def _formatter(flags: str, width: str, precision: str, bits: int, kind: str) -> Formatter:
    if kind in "aA":
        pad = str.ljust if flags == "-" else str.rjust
        return lambda value: pad(_hexadecimal(value, kind), int(width or 0))
    if kind in "eEfFgG":
        # C pads infinities and NaNs with spaces.
        return lambda value: f"%{flags if math.isfinite(value) else flags.strip('0')}{width}{precision}{kind}" % value
    return lambda value: _integer(_as_c_integer(value, bits, signed=kind in "di"), flags, width, precision, kind)


def _integer(value: int, flags: str, width: str, precision: str, kind: str) -> str:
    digits = format(abs(value), "d" if kind in "diu" else kind)
    if precision:
        digits = "" if precision == ".0" and value == 0 else digits.zfill(int(precision[1:]))
    sign = "-" if value < 0 else flags if flags in ("+", " ") and kind in "di" else ""
    if flags == "#" and kind in "xX" and value != 0:
        sign = f"0{kind}"
    elif flags == "#" and kind == "o" and not digits.startswith("0"):
        sign = "0"
    size = int(width or 0)
    if flags == "0" and not precision:
        digits = digits.zfill(size - len(sign))
    text = sign + digits
    return text.ljust(size) if flags == "-" else text.rjust(size)


def _as_c_integer(value: int, bits: int, *, signed: bool) -> int:
    value = int(value) & ((1 << bits) - 1)
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def _hexadecimal(value: float, kind: str) -> str:
    """A float as C writes it with %a: with the shortest mantissa."""
    text = re.sub(r"\.?0*p", "p", float(value).hex())
    return text.upper() if kind == "A" else text


def _numbers(value: Any, element: Element) -> Any:
    """A number, or nested lists of numbers, of the only block that runs."""
    if not isinstance(value, torch.Tensor):
        return value
    return (decode(value, element) if element.encoded else value)[0].tolist()


def _nested(numbers: Any, formatter: Formatter) -> str:
    if isinstance(numbers, list):
        return "[" + ", ".join(_nested(each, formatter) for each in numbers) + "]"
    return formatter(numbers)
