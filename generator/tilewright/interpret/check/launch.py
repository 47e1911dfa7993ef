"""Run a launch in checking mode.

The blocks run one after another under a `Checker`. Then, without it, the grid runs again on copies of the memory:

* in the reverse and in a shuffled order; results must be the same bit for bit, or nearly if there are atomic additions
  of floats, whose rounding depends on the order;
* with other finite numbers instead of zeros for what loads leave undetermined, if they do; results must be the same. So
  a value that only is loaded and dropped is no fault, nor is one that is multiplied by zero, and one that decides a
  maximum is. Where the largest and the smallest numbers overflow to a NaN, as infinity times zero, 1 and -1 decide.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from collections.abc import Sequence

import torch
from torch import Tensor

from tilewright.interpret.check.checker import Checker
from tilewright.interpret.check.extents import BITS
from tilewright.interpret.check.extents import elements_of
from tilewright.interpret.check.findings import CheckError
from tilewright.interpret.check.findings import Finding
from tilewright.interpret.check.findings import Kind
from tilewright.interpret.check.sources import sources
from tilewright.interpret.faults import StepLimitExceeded
from tilewright.interpret.grid import FailedBlock
from tilewright.interpret.grid import Work
from tilewright.interpret.grid import run_grid
from tilewright.interpret.memory.allocations import Memory
from tilewright.interpret.memory.allocations import Undetermined
from tilewright.interpret.memory.places import Extent

_SEED = 0
_EXTREME = (Undetermined.HIGHEST, Undetermined.LOWEST)
_MOST_ARRAYS = 8  # named in an error
_MORE_STEPS = 4  # times those of the first run, after which blocks in another order are taken to wait for each other


def run_checked(work: Work) -> None:
    """Run all blocks; raises `CheckError` with what is wrong, and `FailedBlock` for what ends a block."""
    before = _copy(work.memory)
    assert work.kernel.typed is not None
    checker = Checker(work.memory, work.grid, sources(work.kernel.typed, work.arguments, work.memory))
    one_by_one = dataclasses.replace(work, checker=checker, kernel=dataclasses.replace(work.kernel, in_order=True))
    work.memory.ordered = False
    for block in range(math.prod(work.grid)):
        checker.enter(block)
        run_grid(one_by_one, torch.tensor([block]))
    after = _copy(work.memory)
    try:
        # What went beyond its array did not take place, so there is nothing to compare with.
        if not checker.findings.has(Kind.OUTSIDE, Kind.ASSERTION):
            _vary(work, checker, before, after)
    finally:
        _restore(work.memory, after)
    found = checker.findings.all()
    if found:
        raise CheckError(work.kernel.name, found, _said(work.memory.extents))


def _vary(work: Work, checker: Checker, before: Sequence[Tensor], after: Sequence[Tensor]) -> None:
    """Run the grid in other ways, and report results that are not the same."""
    settings = dataclasses.replace(work.settings, step_limit=_MORE_STEPS * (checker.most_steps + 1))
    quiet = dataclasses.replace(work, settings=settings, output=lambda _: None)
    # Where atomic operations make the order of blocks count, that is no matter of padding.
    in_order = work.memory.ordered or checker.rounds
    total = math.prod(work.grid)
    if total > 1:
        shuffled = torch.randperm(total, generator=torch.Generator().manual_seed(_SEED))
        for name, order in (("reverse", torch.arange(total).flip(0)), ("a shuffled", shuffled)):
            if _rerun(quiet, before, order, checker, f"in {name} order of blocks"):
                _compare(work, checker, after, Kind.ORDER, f"is another one in {name} order of blocks")
    if checker.padded:
        if in_order:
            quiet = dataclasses.replace(quiet, kernel=dataclasses.replace(work.kernel, in_order=True))
        for undetermined in (Undetermined.ONE, Undetermined.MINUS_ONE, *_EXTREME):
            work.memory.undetermined = undetermined
            if _rerun(quiet, before, None, checker, "with other padding"):
                what = f"depends on undetermined padding: give a padding{_loads(checker)}"
                _compare(work, checker, after, Kind.PADDING, what, overflows=undetermined in _EXTREME)


def _loads(checker: Checker) -> str:
    """The loads that one of which wants a padding, as text."""
    places = [f"{name} in {place.file}:{place.line}" for place, name in checker.padded if place is not None]
    return f" to the load of {' or of '.join(places)}" if places else ""


def _rerun(work: Work, before: Sequence[Tensor], order: Tensor | None, checker: Checker, how: str) -> bool:
    """Whether the grid ends; one whose blocks wait for each other says nothing if their order is not that of a GPU."""
    _restore(work.memory, before)
    try:
        run_grid(work, order)
    except FailedBlock as failed:
        if order is not None and isinstance(failed.error, StepLimitExceeded):
            return False
        kind = Kind.ORDER if order is not None else Kind.PADDING
        text = str(failed.error).splitlines()[0]
        mend = "" if order is not None else f"\n  give a padding{_loads(checker)}"
        checker.findings.add(Finding(kind, f"the kernel fails {how}: {text}{mend}", block=failed.block))
        return False
    return True


def _compare(
    work: Work, checker: Checker, after: Sequence[Tensor], kind: Kind, what: str, overflows: bool = False
) -> None:
    """Report where memory is not as `after`; a NaN is no difference if numbers are so large that it `overflows`."""
    now = _copy(work.memory)
    for extent in work.memory.extents:
        for expected, found in _pairs(work.memory, extent, after, now):
            differs = _differs(expected, found, rounds=kind is Kind.ORDER and checker.rounds)
            if overflows and _has_nan(found.dtype):
                differs &= ~found.isnan()
            if bool(differs.any()):
                index = tuple(differs.nonzero()[0].tolist())
                address = extent.address + extent.itemsize * sum(
                    place * stride for place, stride in zip(index, extent.strides, strict=True)
                )
                location, block = checker.last_write(address)
                message = f"what is stored to {extent.name}{list(index)} {what}"
                checker.findings.add(Finding(kind, message, location, block, array=extent.name, index=index))


def _differs(expected: Tensor, found: Tensor, rounds: bool) -> Tensor:
    """Where elements are not the same; zeros are, and so are NaNs, since which one a CPU makes depends on the tile."""
    bits = BITS[expected.dtype.itemsize]
    differs = expected.view(bits) != found.view(bits)
    if _has_nan(expected.dtype):
        differs &= (expected != found) & ~(expected.isnan() & found.isnan())
        if rounds:
            differs &= ~_close(expected, found)
    return differs


def _has_nan(dtype: torch.dtype) -> bool:
    return bool(dtype.is_floating_point) and dtype.itemsize > 1


def _close(expected: Tensor, found: Tensor) -> Tensor:
    """Whether numbers differ by what rounding may do to sums, relative to the largest number around."""
    wide, other = expected.to(torch.float64), found.to(torch.float64)
    scale = float(torch.nan_to_num(wide, 0.0, 0.0, 0.0).abs().max())
    tolerance = math.sqrt(torch.finfo(expected.dtype).eps)
    return torch.isclose(wide, other, rtol=tolerance, atol=tolerance * scale)


def _pairs(
    memory: Memory, extent: Extent, first: Sequence[Tensor], second: Sequence[Tensor]
) -> Iterator[tuple[Tensor, Tensor]]:
    """An array with elements in two copies of the memory."""
    if 0 in extent.shape:
        return
    for allocation, one, other in zip(memory.allocations, first, second, strict=True):
        if allocation.base <= extent.address < allocation.end:
            dtype = extent.dtype
            yield elements_of(extent, one, allocation.base, dtype), elements_of(extent, other, allocation.base, dtype)


def _said(arrays: Sequence[Extent]) -> str:
    """Names and shapes of the arrays of a launch; of long lists only the first ones."""
    named = [f"{each.name} {each.shape}" for each in arrays[:_MOST_ARRAYS]]
    return ", ".join([*named, "..."] if len(arrays) > _MOST_ARRAYS else named)


def _copy(memory: Memory) -> list[Tensor]:
    return [allocation.flat(torch.uint8).clone() for allocation in memory.allocations]


def _restore(memory: Memory, copies: Sequence[Tensor]) -> None:
    for allocation, copy in zip(memory.allocations, copies, strict=True):
        allocation.flat(torch.uint8).copy_(copy)
