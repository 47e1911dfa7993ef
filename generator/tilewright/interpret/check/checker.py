"""Looks at each access of the blocks of a launch, which run one after another, for faults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.check.extents import BITS
from tilewright.interpret.check.extents import contains
from tilewright.interpret.check.extents import index_of
from tilewright.interpret.check.findings import Finding
from tilewright.interpret.check.findings import Findings
from tilewright.interpret.check.findings import Kind
from tilewright.interpret.check.shadow import Accesses
from tilewright.interpret.check.shadow import Clocks
from tilewright.interpret.check.shadow import Shadow
from tilewright.interpret.check.unwritten import unwritten_bytes
from tilewright.interpret.faults import Location
from tilewright.interpret.memory.access import Mask
from tilewright.interpret.memory.access import Site
from tilewright.interpret.memory.allocations import Allocation
from tilewright.interpret.memory.allocations import Memory
from tilewright.interpret.memory.boxes import Elements
from tilewright.interpret.memory.places import Extent
from tilewright.interpret.run import Grid
from tilewright.interpret.run import current_location
from tilewright.interpret.run import index_in_grid

_ACQUIRE = ("ACQUIRE", "ACQ_REL")
_RELEASE = ("RELEASE", "ACQ_REL")
_FEW = 64  # lanes of an operation that synchronises by each of its addresses


class Checker:
    """State of a checked launch; what `Run.checker` is.

    An access to memory beyond its array is reported and does not take place. Plain accesses of different blocks to one
    element race, if one of them is a write and no release and acquire orders them; so do plain writes with atomic
    operations of another block.
    """

    def __init__(self, memory: Memory, grid: Grid, sources: Mapping[str, Sequence[Extent]]) -> None:
        """`sources` are the arrays that each variable of the IR (a view or a pointer) may lead to."""
        self.findings = Findings()
        self.padded: dict[tuple[Location | None, str], None] = {}  # loads that left elements undetermined, in order
        self.rounds = False  # the order of atomic additions of floats decides the last bits
        self.most_steps = 0  # iterations of the loops of a block
        self._memory = memory
        self._grid = grid
        self._sources = sources
        self._shadows: dict[int, Shadow] = {}
        self._sites: list[Location | None] = []
        self._site_numbers: dict[Location | None, int] = {}
        self._clocks = Clocks()
        self._block = 0

    def enter(self, block: int) -> None:
        """Go to the next block."""
        self._block = block
        self._clocks.enter(block)

    def leave(self, steps: int) -> None:
        """A block has ended, after this many iterations of its loops."""
        self.most_steps = max(self.most_steps, steps)

    # What operations report

    def read(self, site: Site, addresses: Tensor, mask: Mask, undetermined: bool) -> Mask:
        """A load; returns the mask of the lanes that may read. `undetermined`: what the others get is not fixed."""
        valid = torch.ones(1, dtype=torch.bool) if mask is None else torch.as_tensor(mask)
        addresses, valid = torch.broadcast_tensors(addresses, valid)
        if undetermined and not bool(valid.all()):
            self.padded[current_location(), self._name(site)] = None
        lanes = addresses[valid]
        allowed = self._inside(site, lanes, "reads")
        self._synchronise(site, lanes[allowed])
        self._read(site, lanes[allowed])
        if bool(allowed.all()):
            return mask
        valid = valid.clone()
        valid[valid.clone()] = allowed
        return valid

    def write(self, site: Site, addresses: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """A store to addresses (one dimension); returns those that may be written to, and their values."""
        allowed = self._inside(site, addresses, "writes")
        addresses, values = addresses[allowed], values[allowed]
        self._lanes(site, addresses, values)
        for allocation, lanes in self._by_allocation(addresses):
            shadow = self._shadow(allocation)
            units = shadow.units(lanes, site.element.itemsize)
            plain = site.order == "WEAK"
            if plain:
                self._race(Kind.WRITES, site, lanes, units, shadow.writes, "writes {}, which block {} writes too")
            for reads in (shadow.first_reads, shadow.last_reads):
                self._race(Kind.READ, site, lanes, units, reads, "writes {}, which block {} reads")
            # Stores that are ordered themselves are no plain writes, but their site is worth knowing.
            shadow.write(units, self._block if plain else -1, self._clocks.epoch, self._site())
        self._mark_written(addresses, site.element.itemsize)
        self._synchronise(site, addresses)
        return addresses, values

    def atomic(self, site: Site, addresses: Tensor) -> Tensor:
        """An atomic operation at addresses (one dimension); returns which may take place."""
        allowed = self._inside(site, addresses, "updates")
        addresses = addresses[allowed]
        self.rounds |= not site.element.is_integer
        self._synchronise(site, addresses, acquire_only=True)
        self._read(site, addresses)
        self._synchronise(site, addresses)
        return allowed

    def broken_promise(self, site: Site, spots: Elements, order: Sequence[int]) -> None:
        """A tile reaches beyond its array, although the kernel says check_bounds=False."""
        assert spots.promised is not None
        outside = ~spots.promised.expand(spots.addresses.shape)
        lane = tuple(outside.nonzero()[0].tolist())
        index = [0] * len(order)
        for dimension, axis in enumerate(order):
            index[axis] = int(spots.indices[dimension].expand(spots.addresses.shape)[lane])
        name = self._name(site)
        self._find(
            Kind.OUTSIDE,
            f"check_bounds is False, but the tile reaches beyond {name}, to {tuple(index)}",
            array=name,
            index=tuple(index),
        )

    def outside(self, site: Site, spots: Elements, order: Sequence[int]) -> None:
        """A tile lies wholly beyond its array, which is undefined behaviour, whatever its padding."""
        index = [0] * len(order)
        for dimension, axis in enumerate(order):
            index[axis] = int(spots.indices[dimension].reshape(-1)[0])
        name = self._name(site)
        shape = "" if len(self._extents(site)) > 1 else f" of shape {self._extents(site)[0].shape}"
        self._find(
            Kind.TILE,
            f"the tile at element {tuple(index)} lies wholly outside of {name}{shape}: a tile must overlap its array",
            array=name,
            index=tuple(index),
        )

    def beside(self, site: Site, address: int, count: int) -> None:
        """A store that TMA would make to `count` bytes of other memory at an address behind a row of its array."""
        extent = self._extents(site)[0]
        self._find(
            Kind.BESIDE,
            f"TMA stores 16 bytes at a time: it would write {count} bytes beside {extent.name}; pass allow_tma=False",
            array=extent.name,
            index=index_of(extent, address),
        )

    def assume(self, value: Any, holds: Tensor, text: str) -> None:
        """The kernel promises the compiler something about a value."""
        if not bool(holds.all()):
            first = int(torch.as_tensor(value).reshape(-1)[int((~holds).reshape(-1).nonzero()[0])])
            self._find(Kind.ASSUMPTION, f"the kernel assumes that a value is {text}, but it is {first}")

    def assertion(self, message: str) -> None:
        """An assertion of the kernel does not hold."""
        self._find(Kind.ASSERTION, message)

    def overflow(self, expression: str, dtype: str) -> None:
        """Arithmetic of an index leaves the range of its dtype."""
        self._find(Kind.OVERFLOW, f"{expression} is not in the range of {dtype}")

    # What happened to an element

    def last_write(self, address: int) -> tuple[Location | None, tuple[int, int, int] | None]:
        """Where in the kernel, and in which block, the element at an address was last written by a plain store."""
        allocation = self._memory.find(address)
        shadow = None if allocation is None else self._shadows.get(allocation.base)
        if shadow is None:
            return None, None
        unit = (address - shadow.base) // shadow.unit
        site, block = int(shadow.writes.site[unit]), int(shadow.writes.block[unit])
        return self._sites[site] if site >= 0 else None, self._index(block) if block >= 0 else None

    # Parts of the above

    def _inside(self, site: Site, addresses: Tensor, does: str) -> Tensor:
        """Which addresses are of elements of the array that the site leads to; reports the first that is not."""
        extents = self._extents(site)
        allowed = torch.zeros(len(addresses), dtype=torch.bool)
        for extent in extents:
            allowed |= contains(extent, addresses)
        if not bool(allowed.all()):
            address = int(addresses[~allowed][0])
            nearest = min(extents, key=lambda extent: max(extent.address - address, address - extent.end))
            index = index_of(nearest, address)
            name = nearest.name
            self._find(
                Kind.OUTSIDE,
                f"{does} {name}{list(index)}, outside of its shape {nearest.shape}",
                array=name,
                index=index,
            )
        return allowed

    def _lanes(self, site: Site, addresses: Tensor, values: Tensor) -> None:
        order = addresses.argsort(stable=True)
        sorted_addresses, bits = addresses[order], values[order].view(BITS[values.dtype.itemsize])
        clash = (sorted_addresses[1:] == sorted_addresses[:-1]) & (bits[1:] != bits[:-1])
        if bool(clash.any()):
            address = int(sorted_addresses[1:][clash][0])
            self._find_at(Kind.LANES, site, address, "stores several values to {}; any may stay")

    def _read(self, site: Site, addresses: Tensor) -> None:
        for allocation, lanes in self._by_allocation(addresses):
            shadow = self._shadow(allocation)
            units = shadow.units(lanes, site.element.itemsize)
            self._race(Kind.READ, site, lanes, units, shadow.writes, "reads {}, which block {} writes")
            shadow.read(units, self._block, self._clocks.epoch, self._site())
            unwritten = unwritten_bytes(allocation.base)
            if unwritten is not None:
                blank = unwritten[lanes - allocation.base]
                if bool(blank.any()):
                    self._find_at(Kind.UNWRITTEN, site, int(lanes[blank][0]), "reads {}, which nothing has written")

    def _race(self, kind: Kind, site: Site, lanes: Tensor, units: Tensor, others: Accesses, message: str) -> None:
        racing = self._clocks.unordered(others.block[units], others.epoch[units])
        if bool(racing.any()):
            lane, part = racing.nonzero()[0].tolist()
            other = self._index(int(others.block[units[lane, part]]))
            self._find_at(kind, site, int(lanes[lane]), message.replace("{}", "{{}}", 1).format(other), other)

    def _synchronise(self, site: Site, addresses: Tensor, acquire_only: bool = False) -> None:
        if site.order in ("WEAK", "RELAXED") or site.scope == "BLOCK" or not len(addresses):
            return
        # Operations on many addresses count as ones on their whole allocations, which is less strict.
        allocations = [allocation.base for allocation, _ in self._by_allocation(addresses)]
        many = len(addresses) > _FEW
        released = [(base, "any") for base in allocations]
        released_together = [(base, "many") for base in allocations]
        if site.order in _ACQUIRE:
            self._clocks.acquire(released if many else [*addresses.tolist(), *released_together])
        if site.order in _RELEASE and not acquire_only:
            self._clocks.release([*released, *(released_together if many else addresses.tolist())])

    def _mark_written(self, addresses: Tensor, itemsize: int) -> None:
        for allocation, lanes in self._by_allocation(addresses):
            unwritten = unwritten_bytes(allocation.base)
            if unwritten is not None:
                unwritten[(lanes - allocation.base)[:, None] + torch.arange(itemsize)] = False

    def _by_allocation(self, addresses: Tensor) -> list[tuple[Allocation, Tensor]]:
        found = []
        for allocation in self._memory.allocations:
            lanes = addresses[(addresses >= allocation.base) & (addresses < allocation.end)]
            if len(lanes):
                found.append((allocation, lanes))
        return found

    def _shadow(self, allocation: Allocation) -> Shadow:
        shadow = self._shadows.get(allocation.base)
        if shadow is None:
            sizes = [each.itemsize for each in self._memory.extents if allocation.base <= each.address < allocation.end]
            shadow = self._shadows[allocation.base] = Shadow(allocation, math.gcd(*sizes))
        return shadow

    def _site(self) -> int:
        location = current_location()
        number = self._site_numbers.setdefault(location, len(self._sites))
        if number == len(self._sites):
            self._sites.append(location)
        return number

    def _extents(self, site: Site) -> Sequence[Extent]:
        return self._sources.get(site.source) or self._memory.extents

    def _name(self, site: Site) -> str:
        return " or ".join(dict.fromkeys(extent.name for extent in self._extents(site)))

    def _index(self, block: int) -> tuple[int, int, int]:
        return index_in_grid(block, self._grid)

    def _find_at(
        self, kind: Kind, site: Site, address: int, message: str, other_block: tuple[int, int, int] | None = None
    ) -> None:
        extents = [each for each in self._extents(site) if bool(contains(each, torch.tensor([address])))]
        extent = extents[0]
        index = index_of(extent, address)
        self._find(
            kind,
            message.format(f"{extent.name}{list(index)}"),
            array=extent.name,
            index=index,
            other_block=other_block,
        )

    def _find(
        self,
        kind: Kind,
        message: str,
        *,
        array: str | None = None,
        index: tuple[int, ...] | None = None,
        other_block: tuple[int, int, int] | None = None,
    ) -> None:
        self.findings.add(
            Finding(kind, message, current_location(), self._index(self._block), other_block, array, index)
        )
