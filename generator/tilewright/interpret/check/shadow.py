"""What blocks did to each element of an allocation, in which order, for finding races between them.

Two accesses of different blocks are ordered if the first block releases something after its access (an atomic
operation or store with release semantics) that the second one acquires before its own. A block counts its releases;
`Clocks` knows up to which of another block's releases a block is ordered behind it.
"""

from __future__ import annotations

from collections.abc import Hashable
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.interpret.memory.allocations import Allocation

NOBODY = -1


class Clocks:
    """What the blocks, which run one after another, know of each other's accesses."""

    def __init__(self) -> None:
        self._block = NOBODY
        self._known: dict[int, int] = {}
        self._released: dict[Hashable, dict[int, int]] = {}  # by place
        self.epoch = 0  # releases of the current block so far

    def enter(self, block: int) -> None:
        """Go to the next block, which knows of no other."""
        self._block = block
        self._known = {}
        self.epoch = 0

    def acquire(self, places: Iterable[Hashable]) -> None:
        """Know all that was known where something was released to one of these places."""
        for place in places:
            for block, epoch in self._released.get(place, {}).items():
                self._known[block] = max(epoch, self._known.get(block, NOBODY))

    def release(self, places: Iterable[Hashable]) -> None:
        """Let those that acquire from one of these places know all that this block did and knows."""
        mine = {**self._known, self._block: self.epoch}
        for place in places:
            there = self._released.setdefault(place, {})
            for block, epoch in mine.items():
                there[block] = max(epoch, there.get(block, NOBODY))
        self.epoch += 1

    def unordered(self, blocks: Tensor, epochs: Tensor) -> Tensor:
        """Where an access of another block (NOBODY: none), in its epoch, is not ordered before the current block."""
        others = (blocks != NOBODY) & (blocks != self._block)
        for block in torch.unique(blocks[others]).tolist() if self._known else []:
            others &= (blocks != block) | (epochs > self._known.get(block, NOBODY))
        return others


@dataclass(frozen=True, slots=True)
class Accesses:
    """The block, its epoch and the site (a number) of one access to each unit of an allocation."""

    block: Tensor
    epoch: Tensor
    site: Tensor

    @classmethod
    def none(cls, units: int) -> Accesses:
        """No access to any unit."""
        blank = torch.full((units,), NOBODY, dtype=torch.int32)
        return cls(blank, blank.clone(), blank.clone())

    def record(self, units: Tensor, block: int, epoch: int, site: int) -> None:
        """Set the access to these units."""
        self.block[units] = block
        self.epoch[units] = epoch
        self.site[units] = site


class Shadow:
    """The last write, and the first and the last read, of each unit of an allocation.

    A unit is as large as the smallest element of the arrays in it. Reads of blocks between the first and the last are
    forgotten, so that a race with one of these only may be missed.
    """

    def __init__(self, allocation: Allocation, unit: int) -> None:
        self.base = allocation.base
        self.unit = unit
        units = (allocation.end - allocation.base) // unit
        self.writes = Accesses.none(units)
        self.first_reads = Accesses.none(units)
        self.last_reads = Accesses.none(units)

    def units(self, addresses: Tensor, itemsize: int) -> Tensor:
        """The units of elements at these addresses: (elements, units of one)."""
        first = (addresses - self.base) // self.unit
        return first[:, None] + torch.arange(max(1, itemsize // self.unit))

    def read(self, units: Tensor, block: int, epoch: int, site: int) -> None:
        """Take note that a block reads these units."""
        flat = units.reshape(-1)
        known = self.first_reads.block[flat]
        mine = (known == NOBODY) | (known == block)
        self.first_reads.record(flat[mine], block, epoch, site)
        self.last_reads.record(flat[~mine], block, epoch, site)

    def write(self, units: Tensor, block: int, epoch: int, site: int) -> None:
        """Take note that a block writes these units."""
        self.writes.record(units.reshape(-1), block, epoch, site)
