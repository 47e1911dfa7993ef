"""Atomic operations on memory, for the lanes of many blocks at once, exactly as if blocks and lanes ran in order.

Lanes that meet at one address are sorted by address. What the earlier ones of a group do to the value that a lane finds
is a segmented scan where the operation is associative (Hillis and Steele, "Data Parallel Algorithms", 1986), else the
lanes of all groups take turns: the first of each, the second of each, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.faults import unknown
from tilewright.interpret.memory import access
from tilewright.interpret.memory.access import Mask
from tilewright.interpret.memory.access import Site
from tilewright.interpret.memory.allocations import Memory
from tilewright.interpret.memory.arrays import ArrayValue
from tilewright.interpret.memory.arrays import Scalar
from tilewright.interpret.memory.boxes import elements
from tilewright.interpret.memory.boxes import place
from tilewright.interpret.numbers.dtypes import as_tensor
from tilewright.interpret.numbers.dtypes import from_storage
from tilewright.interpret.numbers.dtypes import to_storage
from tilewright.interpret.operations.pointers import pointee
from tilewright.interpret.operations.tiles import TileAccess
from tilewright.interpret.operations.tiles import tile_access
from tilewright.interpret.run import Run
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.lowering import lowers
from tilewright.interpret.translate.operands import shape_of

Combine = Callable[[Tensor, Tensor], Tensor]  # what memory holds and an update, to what it holds then


def _unsigned(function: Combine) -> Combine:
    """A comparison of signed integers, made one of the unsigned integers with the same bits."""

    def combine(old: Tensor, new: Tensor) -> Tensor:
        lowest = torch.iinfo(old.dtype).min
        return function(old ^ lowest, new ^ lowest) ^ lowest

    return combine


_ASSOCIATIVE: dict[str, Combine] = {
    "ADD_INT": torch.add,
    "BITWISE_AND": torch.bitwise_and,
    "BITWISE_OR": torch.bitwise_or,
    "BITWISE_XOR": torch.bitwise_xor,
    "MAX_SIGNED_INT": torch.maximum,
    "MIN_SIGNED_INT": torch.minimum,
    "MAX_UNSIGNED_INT": _unsigned(torch.maximum),
    "MIN_UNSIGNED_INT": _unsigned(torch.minimum),
    "EXCHANGE": lambda _, new: new,
}


def _mode(op: Any) -> str:
    """The name of the compiler's AtomicRMWMode; raises `UnsupportedOperation` for one that is not known."""
    name: str = op.mode.name
    if name not in (*_ASSOCIATIVE, "ADD_FLOAT"):
        raise unknown(f"the atomic operation {name}")
    return name


@lowers("tile_atomic_rmw", "mode", "memory_order", "memory_scope")
def _tile_atomic_rmw(op: Any) -> Step:
    site = access.site(op, op.pointer, pointee(op.pointer))
    shape = shape_of(op.pointer)
    mode = _mode(op)
    return Step(
        lambda run, pointer, update, mask: read_modify_write(site, mode, shape, run, pointer, update, mask),
        (op.pointer, op.update, op.mask),
        needs_run=True,
        unused=lambda run, pointer, update, mask: modify(site, mode, run, access.tile_of(pointer), update, mask),
    )


@lowers("tile_atomic_cas", "memory_order", "memory_scope")
def _tile_atomic_cas(op: Any) -> Step:
    site = access.site(op, op.pointer, pointee(op.pointer))
    shape = shape_of(op.pointer)
    return Step(
        lambda run, *operands: compare_and_swap(site, shape, run, *operands),
        (op.pointer, op.expected, op.desired, op.mask),
        needs_run=True,
    )


@lowers("tile_atomic_red_view", "mode", "memory_order", "memory_scope")
def _tile_atomic_red_view(op: Any) -> Step:
    static = tile_access(op)
    mode = _mode(op)
    return Step(
        lambda run, array, index, update: reduce_view(static, mode, run, array, index, update),
        (op.view, op.index, op.update),
        needs_run=True,
    )


def read_modify_write(
    site: Site, mode: str, shape: tuple[int, ...], run: Run, pointer: Scalar, update: Tensor | int, mask: Mask
) -> Tensor | int:
    """Update the elements at the addresses and return what they were, (b, *shape); 0 where the mask is False.

    `mode` is the name of the compiler's AtomicRMWMode.
    """
    addresses = access.tile_of(pointer)
    held = site.element
    values = as_tensor(update, held)
    run.memory.ordered = True
    blank = torch.zeros((1,) * addresses.dim(), dtype=held.compute)
    return _result(site, shape, blank, *_update(site, mode, run, addresses, mask, values))


def modify(site: Site, mode: str, run: Run, addresses: Tensor, update: Tensor | int, mask: Mask) -> None:
    """Update the elements at the addresses, of which nobody wants to know what they were."""
    values = as_tensor(update, site.element)
    if mode not in ("ADD_INT", "ADD_FLOAT"):
        _update(site, mode, run, addresses, mask, values)
        return
    _, chosen, _, (values,) = _taking_part(site, run, addresses, mask, values)
    run.memory.accumulate(chosen, to_storage(values, site.element))


def reduce_view(
    static: TileAccess, mode: str, run: Run, array: ArrayValue, index: Sequence[Scalar], update: Tensor | int
) -> None:
    """Update the elements of tiles (b, *tile) at an index of the view; those outside of the array are dropped."""
    site = static.site
    where = place(static.geometry, array, index)
    spots = elements(where, static.tile, site.element.itemsize, ())
    modify(site, mode, run, spots.addresses, update, spots.inside)


def compare_and_swap(
    site: Site,
    shape: tuple[int, ...],
    run: Run,
    pointer: Scalar,
    expected: Tensor | int,
    desired: Tensor | int,
    mask: Mask,
) -> Tensor | int:
    """Write `desired` where memory holds the bits of `expected`; return what it held, `expected` where not asked."""
    held = site.element
    wanted, new = as_tensor(expected, held), as_tensor(desired, held)
    run.memory.ordered = True
    addresses, lanes = _lanes(site, run, access.tile_of(pointer), mask, wanted, new)
    raw_wanted, raw_new = (to_storage(each, held)[lanes.order] for each in lanes.tiles)
    bits = {4: torch.int32, 8: torch.int64}[held.itemsize]

    def swap(old: Tensor, turn: Tensor) -> Tensor:
        return torch.where(old.view(bits) == raw_wanted[turn].view(bits), raw_new[turn], old)

    old = _in_turn(run.memory, addresses, lanes.groups, held.storage, swap)
    return _result(site, shape, wanted, old, lanes)


def _update(site: Site, mode: str, run: Run, addresses: Tensor, mask: Mask, values: Tensor) -> tuple[Tensor, _Lanes]:
    """What memory held before each of the lanes, sorted by address."""
    held = site.element
    sorted_addresses, lanes = _lanes(site, run, addresses, mask, values)
    raw = to_storage(lanes.tiles[0], held)[lanes.order]
    if mode == "ADD_FLOAT":
        old = _in_turn(run.memory, sorted_addresses, lanes.groups, held.storage, lambda old, turn: old + raw[turn])
    else:
        old = _scan(run.memory, sorted_addresses, lanes.groups, raw, _ASSOCIATIVE[mode])
    return old, lanes


@dataclass(frozen=True, slots=True)
class _Groups:
    """Lanes sorted by address, in groups of one address each."""

    heads: Tensor  # position of the first lane of each group
    members: Tensor  # number of the group of each lane
    ranks: Tensor  # place of each lane in its group
    longest: int  # lanes in the largest group


@dataclass(frozen=True, slots=True)
class _Lanes:
    """The lanes that take part, as one dimension in the order of blocks and lanes."""

    shape: tuple[int, ...]  # of the tile that they are taken from
    places: Tensor  # in this tile
    tiles: tuple[Tensor, ...]  # their values in the operands
    order: Tensor  # that sorts them by address
    groups: _Groups


def _lanes(site: Site, run: Run, addresses: Tensor, mask: Mask, *tiles: Tensor) -> tuple[Tensor, _Lanes]:
    """Sorted addresses of the lanes that take part, and the lanes."""
    shape, chosen, places, values = _taking_part(site, run, addresses, mask, *tiles)
    order = chosen.argsort(stable=True)
    ordered = chosen[order]
    return ordered, _Lanes(shape, places, values, order, _groups(ordered))


def _taking_part(
    site: Site, run: Run, addresses: Tensor, mask: Mask, *tiles: Tensor
) -> tuple[tuple[int, ...], Tensor, Tensor, tuple[Tensor, ...]]:
    """Shape of the operands, and of the lanes in order the addresses, places in this shape and values."""
    operands = [addresses, *tiles] if mask is None else [addresses, *tiles, torch.as_tensor(mask)]
    blocks, *rest = torch.broadcast_shapes(*(each.shape for each in operands))
    shape = (max(run.size, blocks), *rest)  # each block does its own, with the same operands too
    places = torch.arange(torch.Size(shape).numel()).view(shape)
    chosen, places, *values = access.selected(addresses, mask, places, *tiles)
    if run.checker is not None:
        allowed = run.checker.atomic(site, chosen)
        chosen, places, *values = (each[allowed] for each in (chosen, places, *values))
    return shape, chosen, places, tuple(values)


def _groups(addresses: Tensor) -> _Groups:
    positions = torch.arange(len(addresses))
    is_head = torch.ones(len(addresses), dtype=torch.bool)
    is_head[1:] = addresses[1:] != addresses[:-1]
    heads = is_head.nonzero().squeeze(1)
    members = is_head.cumsum(0) - 1
    ranks = positions - heads[members]
    return _Groups(heads, members, ranks, int(ranks.max()) + 1 if len(ranks) else 0)


def _scan(memory: Memory, addresses: Tensor, groups: _Groups, updates: Tensor, combine: Combine) -> Tensor:
    """Make the updates, all sorted by address; returns what memory held before each."""
    start = memory.read(addresses[groups.heads], updates.dtype)
    before = start[groups.members]
    together = updates  # of the lane and those before it in its group
    distance = 1
    while distance < groups.longest:
        both = combine(together[:-distance], together[distance:])
        far = groups.ranks[distance:] >= distance
        together = torch.cat([together[:distance], torch.where(far, both, together[distance:])])
        distance *= 2
    if groups.longest > 1:
        later = (groups.ranks > 0).nonzero().squeeze(1)
        before[later] = combine(before[later], together[later - 1])
    last = torch.cat([groups.heads[1:], groups.heads.new_tensor([len(addresses)])[: len(groups.heads)]]) - 1
    memory.write(addresses[groups.heads], combine(start, together[last]))
    return before


def _in_turn(
    memory: Memory,
    addresses: Tensor,
    groups: _Groups,
    storage: torch.dtype,
    change: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """Let each lane change what memory holds: change(held, lanes) for one lane of each group at a time."""
    now = memory.read(addresses[groups.heads], storage)
    before = now[groups.members]
    by_rank = groups.ranks.argsort(stable=True)
    for turn in by_rank.split(torch.bincount(groups.ranks, minlength=groups.longest).tolist()):
        which = groups.members[turn]
        before[turn] = now[which]
        now[which] = change(now[which], turn)
    memory.write(addresses[groups.heads], now)
    return before


def _result(site: Site, shape: tuple[int, ...], blank: Tensor, old: Tensor, lanes: _Lanes) -> Tensor | int:
    """Tile of what memory held, of `blank` for the lanes that did not take part."""
    tile = blank.expand(lanes.shape).reshape(-1).clone()
    tile[lanes.places[lanes.order]] = from_storage(old, site.element)
    return access.result(tile.view(lanes.shape), site.element, shape)
