"""What tileiras refuses of what the front end lets through: refused here too, as it would, with the line of the kernel.

The tests compare each rule with tileiras; where that gives no reason, one is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Iterator
from inspect import signature
from typing import Any

import cuda.tile as ct
from cuda.tile._ir.type import TileTy

from tilewright.interpret.memory.arrays import tiling
from tilewright.interpret.numbers.dtypes import BFLOAT16
from tilewright.interpret.numbers.dtypes import FLOAT4_E2M1FN
from tilewright.interpret.numbers.dtypes import FLOAT8_E8M0FNU
from tilewright.interpret.numbers.dtypes import FLOAT16
from tilewright.interpret.numbers.dtypes import TFLOAT32
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.dtypes import element
from tilewright.interpret.numbers.rounding import DOWN
from tilewright.interpret.numbers.rounding import UP
from tilewright.interpret.translate.blocks import all_operations
from tilewright.interpret.translate.operands import element_of
from tilewright.interpret.translate.operands import shape_of

_MOST_ELEMENTS = 2**24  # of a tile
_INVALID, _FAILED = 3, 5  # what tileiras returns for code that is not valid, and for code that it cannot translate
_NO_INTEGERS = "integer to f8E8M0FNU conversion is not supported, please first convert to another float type"
# Paddings that are no numbers of a format.
_NOT_IN = {
    "float8_e4m3fn": ("POS_INF", "NEG_INF"),
    "float8_e8m0fnu": ("NEG_ZERO", "POS_INF", "NEG_INF"),
}

Refusals = Iterator[tuple[int, str]]


def require_compilable(body: Any) -> None:
    """Raise `cuda.tile.TileCompilerExecutionError` for the first operation of a kernel that tileiras refuses."""
    for op in all_operations(body):
        for code, message in _refusals(op):
            # cuda-tile 1.6 added the location to the arguments.
            location = (op.loc,) if "loc" in signature(ct.TileCompilerExecutionError).parameters else ()
            error = ct.TileCompilerExecutionError(code, message, *location, "", None)
            error.loc = op.loc
            raise error


def _refusals(op: Any) -> Refusals:
    for variable in op.result_vars:
        if isinstance(variable.try_get_type(), TileTy):
            yield from _of_size(math.prod(shape_of(variable)), element_of(variable))
    rule = _RULES.get(op.op)
    if rule is not None:
        yield from rule(op)


def _of_size(elements: int, held: Element) -> Refusals:
    if elements > _MOST_ELEMENTS:
        yield _INVALID, f"tile would exceed the maximum of {_MOST_ELEMENTS} elements"
    if held is FLOAT4_E2M1FN and elements % 2:
        yield _INVALID, "F4E2M1FN tiles must have an even number of elements"


def _binary_arithmetic(op: Any) -> Refusals:
    if op.fn == "floordiv" and element_of(op.lhs).kind == "u":
        yield _INVALID, "'cuda_tile.divi' op rounding mode 'negative_inf' is not allowed with 'unsigned' flag"


def _where(op: Any) -> Refusals:
    if element_of(op.x) is FLOAT4_E2M1FN:
        yield _INVALID, "'cuda_tile.select' op cannot operate on sub-byte type F4E2M1FN"


def _arange(op: Any) -> Refusals:
    if element_of(op.result_var) is FLOAT8_E8M0FNU:
        yield _INVALID, f"'cuda_tile.itof' op {_NO_INTEGERS}"


def _cast(op: Any) -> Refusals:
    source, target = element_of(op.x), element_of(op.result_var)
    if source.is_integer and target is FLOAT8_E8M0FNU:
        yield _INVALID, f"'cuda_tile.itof' op {_NO_INTEGERS}"
    mode = getattr(op, "rounding_mode", None)
    if source is BFLOAT16 and target is FLOAT16 and mode is not None and mode.value in (UP, DOWN):
        yield (
            _INVALID,
            "'cuda_tile.ftof' op invalid rounding mode specified. "
            "Only 'nearest_even' and 'zero' are supported for narrowing conversions to standard types",
        )


def _bitcast(op: Any) -> Refusals:
    widths = [19 if element_of(each) is TFLOAT32 else element_of(each).bits for each in (op.x, op.result_var)]
    if widths[0] != widths[1]:
        source, target = map(_spelling, (op.x, op.result_var))
        yield (
            _INVALID,
            f"'cuda_tile.bitcast' op types must be equal width, cannot convert {source} of width {widths[0]} "
            f"to type {target} of width {widths[1]}",
        )


def _extract(op: Any) -> Refusals:
    for place, index in enumerate(op.index):
        if element_of(index).bits != 32:
            yield (
                _INVALID,
                f"'cuda_tile.extract' op operand #{1 + place} must be variadic of 0D tile of i32 values, "
                f"but got {_spelling(index)}",
            )


def _product(op: Any) -> Refusals:
    if len(shape_of(op.acc)) > 3:
        yield (
            _INVALID,
            f"'cuda_tile.mma{'i' if element_of(op.x).is_integer else 'f'}' op operands must be 2D or 3D tiles",
        )


def _partition(op: Any) -> Refusals:
    view = op.result_var.get_type()
    array, tile = view.array_ty.ndim, len(view.tile_shape)
    if array != tile:
        yield (
            _INVALID,
            "expected tensor_view rank and tile rank to match, "
            f"got tensor_view of rank {array} and tiles of rank {tile}",
        )


def _load(op: Any) -> Refusals:
    view = op.view.get_type()
    held, mode = element(view.array_ty.dtype), tiling(view).padding
    if held.is_integer and mode not in ("UNDETERMINED", "ZERO"):
        yield (
            _INVALID,
            f"padding_value {mode.lower()} can only be used with floating point element types, got {_integer(held)!r}",
        )
    if tiling(view).sparse is None and mode in _NOT_IN.get(held.name, ()):
        yield _FAILED, f"failed to compile Tile IR program: {held.name} has no {mode.lower()} to pad with"
    yield from _sparse_index(op)


def _sparse_index(op: Any) -> Refusals:
    sparse = tiling(op.view.get_type()).sparse
    if sparse is None:
        return
    bits = element_of(op.index[sparse]).bits
    if bits < 32:
        yield _FAILED, f"failed to compile Tile IR program: the indices are of {bits} bits, not of 32"
    elif bits > 32:
        yield _INVALID, "'cuda_tile.trunci' op failed to verify that all of {from, to} have same shape"


_RULES: dict[str, Callable[[Any], Refusals]] = {
    "make_partition_view": _partition,
    "raw_binary_arith": _binary_arithmetic,
    "raw_where": _where,
    "tile_arange": _arange,
    "tile_astype": _cast,
    "tile_bitcast": _bitcast,
    "tile_extract": _extract,
    "tile_load": _load,
    "tile_mma": _product,
    "tile_store": _sparse_index,
}


def _spelling(variable: Any) -> str:
    """A type as MLIR writes it, of integers, float32 and tfloat32."""
    held = element_of(variable)
    name = _integer(held) if held.is_integer else held.name.replace("float", "f")
    return f"'!cuda_tile.tile<{'x'.join([*map(str, shape_of(variable)), name])}>'"


def _integer(held: Element) -> str:
    return "i1" if held.kind == "b" else f"i{held.bits}"
