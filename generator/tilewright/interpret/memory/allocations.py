"""The memory that a launch may touch, by absolute address, and a log that undoes the writes of a batch."""

from __future__ import annotations

import bisect
import ctypes
import enum
import sys
from collections.abc import Iterator
from collections.abc import Sequence

import torch
from torch import Tensor

from tilewright.interpret.faults import MisalignedAccess
from tilewright.interpret.faults import OutOfBounds
from tilewright.interpret.memory.places import Extent
from tilewright.interpret.memory.places import place_of
from tilewright.interpret.run import Diverge


class LogFull(Exception):
    """A batch writes more than may be logged; fewer blocks at once write less."""


class Undetermined(enum.Enum):
    """What elements are that a load leaves undetermined; a correct kernel stores the same for each of these."""

    ZERO = enum.auto()
    ONE = enum.auto()
    MINUS_ONE = enum.auto()
    HIGHEST = enum.auto()
    LOWEST = enum.auto()


class Allocation:
    """One piece of memory: the storage of one or more arrays."""

    __slots__ = ("_owner", "_views", "base", "end")

    def __init__(self, base: int, end: int, owner: Tensor) -> None:
        """`owner` is a uint8 tensor (end - base,) over the memory from address `base` on."""
        self.base = base
        self.end = end
        self._owner = owner
        self._views = {torch.uint8: owner}

    def flat(self, dtype: torch.dtype) -> Tensor:
        """All of the memory as a tensor of one dimension, which is written through."""
        view = self._views.get(dtype)
        if view is None:
            count = (self.end - self.base) // dtype.itemsize
            view = torch.empty(0, dtype=dtype)
            view.set_(self._owner.untyped_storage(), 0, (count,), (1,))
            self._views[dtype] = view
        return view


class Memory:
    """The allocations of a launch."""

    def __init__(self) -> None:
        self.extents: list[Extent] = []
        self.allocations: list[Allocation] = []  # by address
        self.undetermined = Undetermined.ZERO
        self.ordered = False  # the batch has read what other blocks may have written before: by atomic operations
        self._bases: list[int] = []
        self._log: list[tuple[Tensor, Tensor | None, Tensor]] | None = None
        self._log_left = 0  # bytes

    def add(self, tensor: Tensor, name: str = "an array") -> None:
        """Let the launch touch the storage of `tensor` (on the CPU), an argument or an element of one."""
        self.extents.append(Extent(name, tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype))
        storage = tensor.untyped_storage()
        base, size = storage.data_ptr(), storage.nbytes()
        known = self.find(base)
        if size == 0 or (known is not None and base + size <= known.end):
            return
        owner = torch.empty(0, dtype=torch.uint8)
        owner.set_(storage, 0, (size,), (1,))
        self._insert(Allocation(base, base + size, owner))

    def _insert(self, new: Allocation) -> None:
        """Add an allocation; those that overlap it, as storages over one numpy array do, become one with it."""
        first = bisect.bisect_right(self._bases, new.base)
        if first and self.allocations[first - 1].end > new.base:
            first -= 1
        last = bisect.bisect_left(self._bases, new.end, first)
        overlapping = self.allocations[first:last]
        if overlapping:
            base = min(new.base, *(each.base for each in overlapping))
            end = max(new.end, *(each.end for each in overlapping))
            shared = (ctypes.c_uint8 * (end - base)).from_address(base)
            new = Allocation(base, end, torch.frombuffer(shared, dtype=torch.uint8))
        self.allocations[first:last] = [new]
        self._bases[first:last] = [new.base]

    def find(self, address: int) -> Allocation | None:
        """The allocation that has the byte at this address, if any."""
        place = bisect.bisect_right(self._bases, address) - 1
        if place < 0 or address >= self.allocations[place].end:
            return None
        return self.allocations[place]

    # Reading and writing elements

    def read(self, addresses: Tensor, dtype: torch.dtype) -> Tensor:
        """Elements at int64 addresses of any shape; raises `OutOfBounds` or `MisalignedAccess`."""
        flat = addresses.reshape(-1)
        result: Tensor | None = None
        for allocation, positions, lanes in self._locate(flat, dtype, "read"):
            found = allocation.flat(dtype).index_select(0, positions)
            if lanes is None:
                return found.view(addresses.shape)
            if result is None:
                result = found.new_zeros(len(flat))
            result[lanes] = found
        return (torch.zeros(0, dtype=dtype) if result is None else result).view(addresses.shape)

    def write(self, addresses: Tensor, values: Tensor) -> None:
        """Write elements, in the order of `addresses` (one dimension), so that the last of several at a place stays."""
        for allocation, positions, lanes in self._locate(addresses, values.dtype, "write"):
            memory = allocation.flat(values.dtype)
            if self._log is not None:
                self._note(memory, positions, memory.index_select(0, positions))
            memory.scatter_(0, positions, values if lanes is None else values[lanes])

    def accumulate(self, addresses: Tensor, values: Tensor) -> None:
        """Add to elements, one addition after another in the order of `addresses` (one dimension)."""
        for allocation, positions, lanes in self._locate(addresses, values.dtype, "write"):
            memory = allocation.flat(values.dtype)
            if self._log is not None:
                self._note(memory, positions, memory.index_select(0, positions))
            memory.index_add_(0, positions, values if lanes is None else values[lanes])

    def _locate(
        self, addresses: Tensor, dtype: torch.dtype, access: str
    ) -> Iterator[tuple[Allocation, Tensor, Tensor | None]]:
        """For each allocation that `addresses` fall into: positions in it, and which addresses (None: all)."""
        if len(addresses) == 0:
            return
        low, high = (int(each) for each in torch.aminmax(addresses))
        allocation = self.find(low)
        if allocation is not None and high + dtype.itemsize <= allocation.end:
            yield allocation, self._positions(allocation, addresses, dtype, access), None
            return
        owners = self._owners(addresses, dtype, access)
        for owner in torch.unique(owners).tolist():
            lanes = (owners == owner).nonzero().squeeze(1)
            allocation = self.allocations[owner]
            yield allocation, self._positions(allocation, addresses[lanes], dtype, access), lanes

    def _owners(self, addresses: Tensor, dtype: torch.dtype, access: str) -> Tensor:
        """Index of the allocation of each address."""
        if self.allocations:
            owners = torch.bucketize(addresses, torch.tensor(self._bases), right=True) - 1
            ends = torch.tensor([each.end for each in self.allocations])[owners]
            outside = (owners < 0) | (addresses + dtype.itemsize > ends)
        else:
            owners, outside = addresses, torch.ones_like(addresses, dtype=torch.bool)
        if bool(outside.any()):
            raise self.fault(int(addresses[outside][0]), dtype.itemsize, access)
        return owners

    def _positions(self, allocation: Allocation, addresses: Tensor, dtype: torch.dtype, access: str) -> Tensor:
        distances = addresses - allocation.base
        if dtype.itemsize == 1:
            return distances
        misaligned = distances % dtype.itemsize
        if bool(misaligned.any()):
            first = int(misaligned.nonzero()[0])
            raise MisalignedAccess(self._misaligned(int(addresses[first]), dtype.itemsize, access))
        return distances // dtype.itemsize

    # Reading and writing boxes: elements at regular distances in all dimensions

    def box(
        self, address: int, sizes: Sequence[int], strides: Sequence[int], dtype: torch.dtype, access: str
    ) -> Tensor:
        """View of memory with these sizes and strides (in elements), the first element at `address`."""
        allocation, position = self._box(address, address, sizes, strides, dtype, access)
        return allocation.flat(dtype).as_strided(sizes, strides, position)

    def boxes(
        self, addresses: Tensor, sizes: Sequence[int], strides: Sequence[int], dtype: torch.dtype, access: str
    ) -> tuple[Tensor, Tensor]:
        """View of memory (n, *sizes) and positions (b,) so that view[positions[i]] is the box at addresses[i]."""
        low, high = (int(each) for each in torch.aminmax(addresses))
        if self.find(low) is not self.find(high):
            raise Diverge  # arrays that the blocks choose for themselves
        allocation, position = self._box(low, high, sizes, strides, dtype, access)
        count = (high - low) // dtype.itemsize + 1
        view = allocation.flat(dtype).as_strided((count, *sizes), (1, *strides), position)
        return view, (addresses - low) // dtype.itemsize

    def _box(
        self, low: int, high: int, sizes: Sequence[int], strides: Sequence[int], dtype: torch.dtype, access: str
    ) -> tuple[Allocation, int]:
        """Allocation and position of the boxes from `low` to `high`, which are inside of it as a whole."""
        reach = [(size - 1) * stride * dtype.itemsize for size, stride in zip(sizes, strides, strict=True)]
        first = low + sum(each for each in reach if each < 0)
        last = high + sum(each for each in reach if each > 0)
        allocation = self.find(first)
        if allocation is None:
            raise self.fault(first, dtype.itemsize, access)
        if last + dtype.itemsize > allocation.end:
            raise self.fault(last, dtype.itemsize, access)
        position, rest = divmod(low - allocation.base, dtype.itemsize)
        if rest:
            raise MisalignedAccess(self._misaligned(low, dtype.itemsize, access))
        return allocation, position

    def overwrite(self, view: Tensor, positions: Tensor | None, values: Tensor) -> None:
        """Write to a view that `box` (no positions) or `boxes` returned; no stride of more than one element is 0."""
        if self._log is not None:
            old = view.clone() if positions is None else view.index_select(0, positions)
            self._note(view, positions, old)
        _put(view, positions, values)

    # Batches

    def begin(self, most_bytes: int = sys.maxsize) -> None:
        """Start to log writes; one for which the log would take more bytes is not done and raises `LogFull`."""
        self._log = []
        self._log_left = most_bytes
        self.ordered = False

    def _note(self, view: Tensor, positions: Tensor | None, old: Tensor) -> None:
        assert self._log is not None
        self._log_left -= _logged_bytes(positions, old)
        if self._log_left < 0:
            raise LogFull
        self._log.append((view, positions, old))

    def mark(self) -> int:
        """A moment that `go_back` knows, within the batch."""
        return len(self._log or ())

    def go_back(self, mark: int) -> None:
        """Take back all writes since the moment that `mark` returned this."""
        log = self._log or []
        while len(log) > mark:
            view, positions, old = log.pop()
            _put(view, positions, old)
            self._log_left += _logged_bytes(positions, old)

    def undo(self) -> None:
        """Take back all writes since `begin`, and stop to log."""
        self.go_back(0)
        self._log = None

    def commit(self) -> None:
        """Keep all writes since `begin`, and stop to log."""
        self._log = None

    # Errors

    def fault(self, address: int, itemsize: int, access: str) -> OutOfBounds:
        """The error of an access outside of all allocations."""
        return OutOfBounds(
            f"a {access} of {itemsize} bytes {place_of(address, self.extents)}\n"
            "kernels may only touch the memory of the arrays that they get: check indices, masks and bounds"
        )

    def _misaligned(self, address: int, itemsize: int, access: str) -> str:
        return (
            f"a {access} of {itemsize} bytes {place_of(address, self.extents)} is not aligned to {itemsize} bytes\n"
            "a GPU fails there: compute addresses that are multiples of the size of an element"
        )


def _logged_bytes(positions: Tensor | None, old: Tensor) -> int:
    return int(old.nbytes) + (0 if positions is None else int(positions.nbytes))


def _put(view: Tensor, positions: Tensor | None, values: Tensor) -> None:
    if positions is None:
        view.copy_(values)
    elif view.dim() == 1:
        view.scatter_(0, positions, values)
    else:
        view[positions] = values
