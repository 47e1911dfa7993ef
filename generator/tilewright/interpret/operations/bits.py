"""Operations on the bit patterns of tiles: bitcasts, and packing into bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.numbers.dtypes import TFLOAT32
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.dtypes import as_tensor
from tilewright.interpret.numbers.dtypes import from_storage
from tilewright.interpret.numbers.dtypes import to_storage
from tilewright.interpret.numbers.dtypes import wrap
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.lowering import lowers
from tilewright.interpret.translate.operands import element_of


@lowers("tile_bitcast")
def _bitcast(op: Any) -> Step:
    return Step(bitcast(element_of(op.x), element_of(op.result_var)), (op.x,))


def bitcast(source: Element, target: Element) -> Callable[[Any], Any]:
    """The function that takes the bits of one dtype for those of another of the same width."""

    def of_tile(tile: Tensor) -> Tensor:
        return _from_bits(to_storage(tile, source).view(target.storage), target)

    if not source.is_integer:
        return of_tile
    if target.is_integer:
        return lambda value: of_tile(value) if isinstance(value, Tensor) else wrap(value, target)
    return lambda value: of_tile(as_tensor(value, source))


def _from_bits(memory: Tensor, element: Element) -> Tensor:
    if element is TFLOAT32:
        memory = (memory.view(torch.int32) & ~0x1FFF).view(torch.float32)
    return from_storage(memory, element)


@lowers("tile_pack")
def _pack(op: Any) -> Step:
    return Step(packing(element_of(op.x)), (op.x,))


def packing(element: Element) -> Callable[[Tensor], Tensor]:
    """The function that turns tiles of shape (blocks, n) into their bytes, little end first."""
    if element.bits == 4:
        return lambda tile: tile[:, 0::2] | (tile[:, 1::2] << 4)
    return lambda tile: to_storage(tile, element).contiguous().view(torch.uint8)


@lowers("tile_unpack")
def _unpack(op: Any) -> Step:
    return Step(unpacking(element_of(op.result_var)), (op.x,))


def unpacking(element: Element) -> Callable[[Tensor], Tensor]:
    """The function that turns bytes of shape (blocks, n) into elements: `packing` backwards."""
    if element.bits == 4:
        return lambda tile: torch.stack((tile & 0xF, tile >> 4), -1).flatten(1)
    return lambda tile: _from_bits(tile.contiguous().view(element.storage), element)
