"""Reads and writes of elements by address, as loads, stores and atomic operations do them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from typing import TypeAlias

import torch
from torch import Tensor

from tilewright.interpret.memory.arrays import Scalar
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.dtypes import as_scalar
from tilewright.interpret.numbers.dtypes import element
from tilewright.interpret.numbers.dtypes import from_storage
from tilewright.interpret.run import Run

Mask: TypeAlias = Tensor | bool | None


@dataclass(frozen=True, slots=True)
class Site:
    """What is fixed about one operation of a kernel that touches memory.

    `source` names the variable of the IR that leads to memory (a view or a pointer); `order` and `scope` are the names
    of its MemoryOrder and MemoryScope.
    """

    element: Element
    source: str
    order: str
    scope: str


def site(op: Any, source: Any, dtype: Any) -> Site:
    """The site of an operation on elements of a dtype of cuda.tile."""
    order = getattr(op, "memory_order", None)
    scope = getattr(op, "memory_scope", None)
    return Site(
        element(dtype), source.name, "WEAK" if order is None else order.name, "NONE" if scope is None else scope.name
    )


def load_elements(run: Run, site: Site, addresses: Tensor, mask: Mask, padding: Tensor, undetermined: bool) -> Tensor:
    """Tile of the elements at `addresses`; of `padding` where the mask is False. All broadcast."""
    if run.checker is not None:
        mask = run.checker.read(site, addresses, mask, undetermined)
    held = site.element
    if mask is None or (bool(mask.all()) if isinstance(mask, Tensor) else mask):
        return from_storage(run.memory.read(addresses, held.storage), held)
    valid = torch.as_tensor(mask)
    shape = torch.broadcast_shapes(addresses.shape, valid.shape, padding.shape)
    tile = padding.expand(shape).reshape(-1).clone()
    chosen, lanes = selected(addresses, valid, torch.arange(len(tile)).view(shape))
    tile[lanes] = from_storage(run.memory.read(chosen, held.storage), held)
    return tile.view(shape)


def store_elements(run: Run, site: Site, addresses: Tensor, mask: Mask, raw: Tensor) -> None:
    """Write `raw` (dtype `site.element.storage`) where the mask is True. All broadcast; later blocks and lanes last."""
    lanes, values = selected(addresses, mask, raw)
    if run.checker is not None:
        lanes, values = run.checker.write(site, lanes, values)
    run.memory.write(lanes, values)


def selected(addresses: Tensor, mask: Mask, *tiles: Tensor) -> tuple[Tensor, ...]:
    """Addresses and elements where the mask is True, each as one dimension, in the order of blocks and lanes."""
    together = [addresses, *tiles] if mask is None else [addresses, *tiles, torch.as_tensor(mask)]
    flat = [each.reshape(-1) for each in torch.broadcast_tensors(*together)]
    if mask is None:
        return tuple(flat)
    lanes = flat.pop().nonzero().squeeze(1)
    return tuple(each[lanes] for each in flat)


def tile_of(pointer: Scalar) -> Tensor:
    """Addresses as a tile: (1,) for a uniform one."""
    return pointer if isinstance(pointer, Tensor) else torch.tensor([pointer])


def result(tile: Tensor, held: Element, shape: tuple[int, ...]) -> Tensor | int:
    """The tile (b, *shape); the Python value of a uniform integer scalar."""
    if shape or len(tile) > 1 or not held.is_integer:
        return tile
    return as_scalar(tile, held)
