"""Print from kernels as C's printf does; a tile is printed as nested lists of its formatted elements."""

import re
from collections.abc import Callable
from typing import Any

import torch

from tilewright.interpret.lowering import Step
from tilewright.interpret.lowering import lowers
from tilewright.interpret.run import Run

_CONVERSION = re.compile(r"%(?:%|([ #0+-]*)(\d*)(\.\d+)?(hh|h|ll|l)?([diuoxXeEfFgGaA]))")
_BITS = {"hh": 8, "h": 16, "": 32, "l": 64, "ll": 64}

Formatter = Callable[[Any], str]


@lowers("tile_printf", "format")
def _printf(op: Any) -> Step:
    text, formatters = parse(op.format)

    def printf(run: Run, values: tuple[Any, ...]) -> None:
        run.output(text % tuple(_nested(_numbers(each), form) for each, form in zip(values, formatters, strict=True)))

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
        pad = str.ljust if "-" in flags else str.rjust
        return lambda value: pad(_hexadecimal(value, kind), int(width or 0))
    if kind in "eEfFgG":
        return lambda value: f"%{flags}{width}{precision}{kind}" % value
    conversion = f"%{flags}{width}{precision}{'d' if kind in 'iu' else kind}"
    return lambda value: conversion % _as_c_integer(value, bits, signed=kind in "di")


def _as_c_integer(value: int, bits: int, *, signed: bool) -> int:
    value = int(value) & ((1 << bits) - 1)
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def _hexadecimal(value: float, kind: str) -> str:
    """A float as C writes it with %a: with the shortest mantissa."""
    text = re.sub(r"\.?0*p", "p", float(value).hex())
    return text.upper() if kind == "A" else text


def _numbers(value: Any) -> Any:
    """A number, or nested lists of numbers, of the only block that runs."""
    return value[0].tolist() if isinstance(value, torch.Tensor) else value


def _nested(numbers: Any, formatter: Formatter) -> str:
    if isinstance(numbers, list):
        return "[" + ", ".join(_nested(each, formatter) for each in numbers) + "]"
    return formatter(numbers)
