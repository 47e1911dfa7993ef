"""When each tile of a kernel is last used, and the memory that one block needs at most."""

import math
from typing import Any

from cuda.tile._ir.ir import MemoryEffect
from cuda.tile._ir.type import TileTy

from tilewright.interpret.numbers.dtypes import element
from tilewright.interpret.translate.blocks import definitions
from tilewright.interpret.translate.blocks import names_in
from tilewright.interpret.translate.blocks import outer_variables

# Temporaries of one operation, beside its operands and results: casts to wider dtypes, and addresses with masks.
_TEMPORARY_COPIES = 3
_ADDRESS_BYTES = 24


def tile_bytes(variable: Any) -> int:
    """Bytes of a tile of one block; 0 for scalars and what is no tile."""
    ty = variable.try_get_type()
    if not isinstance(ty, TileTy) or not ty.shape:
        return 0
    shape: tuple[int, ...] = ty.shape
    itemsize: int = element(ty.dtype).compute.itemsize
    return math.prod(shape) * itemsize


def releases(block: Any) -> list[list[Any]]:
    """For each operation of the block, the tiles defined in the block that are used there for the last time."""
    defined = {variable.name: variable for variable in definitions(block) if tile_bytes(variable)}
    last: dict[str, int] = {}
    for position, op in enumerate(block):
        for name in names_in(op):
            last[name] = position
    released: list[list[Any]] = [[] for _ in block]
    for name, variable in defined.items():
        if name in last:
            released[last[name]].append(variable)
    return released


def peak_bytes(block: Any) -> int:
    """Bytes that one block of the grid needs at most for tiles while this block of the IR runs."""
    live = sum(map(tile_bytes, block.params))
    peak = live
    for op, released in zip(block, releases(block), strict=True):
        live += sum(map(tile_bytes, op.result_vars))
        inner = max((_copied(nested) + peak_bytes(nested) for nested in op.nested_blocks), default=0)
        peak = max(peak, live + inner + _temporaries(op))
        live -= sum(map(tile_bytes, released))
    return peak


def _copied(block: Any) -> int:
    """Bytes that parts of a batch have for themselves while they run a block, of what it takes from outside."""
    return sum(map(tile_bytes, (*block.params, *outer_variables(block, block.params))))


def _temporaries(op: Any) -> int:
    variables = [*op.all_inputs(), *op.result_vars]
    largest = max(map(tile_bytes, variables), default=0)
    if op.memory_effect == MemoryEffect.NONE:
        return _TEMPORARY_COPIES * largest
    elements = max((math.prod(v.try_get_type().shape) for v in variables if tile_bytes(v)), default=0)
    return largest + _ADDRESS_BYTES * elements
