"""Run a translated kernel over its grid: many blocks at once, fewer where they disagree.

A batch whose blocks disagree about control flow is undone and split by what they disagree about; one that fails is
undone and halved, until the first block that fails runs alone and its error names it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Any

import torch

from tilewright.interpret.faults import StepLimitExceeded
from tilewright.interpret.memory.allocations import Memory
from tilewright.interpret.run import Diverge
from tilewright.interpret.run import Grid
from tilewright.interpret.run import Run
from tilewright.interpret.run import index_in_grid
from tilewright.interpret.run import print_text
from tilewright.interpret.settings import Settings
from tilewright.interpret.translate.kernel import TranslatedKernel

if TYPE_CHECKING:
    from tilewright.interpret.check.checker import Checker

_MOST_BLOCKS = 2**16  # at once, of kernels that compute with scalars only


@dataclass(frozen=True, slots=True)
class Work:
    """A launch that is ready to run."""

    kernel: TranslatedKernel
    grid: Grid
    arguments: Sequence[Any]
    memory: Memory
    settings: Settings
    checker: Checker | None = None  # of blocks that run one after another
    output: Callable[[str], object] = print_text


class FailedBlock(Exception):
    """Wraps what a kernel raised, with the index of the block that raised it."""

    def __init__(self, block: tuple[int, int, int], error: BaseException) -> None:
        super().__init__(block, error)
        self.block = block
        self.error = error


def run_grid(work: Work, order: torch.Tensor | None = None) -> None:
    """Run all blocks, in the order of their linear indices (x fastest), or those of `order` in this order.

    Raises `FailedBlock` for the first block that fails, in this order, with the writes of those before it done.
    """
    total = math.prod(work.grid) if order is None else len(order)
    batch = 1 if work.kernel.in_order else _blocks_at_once(work)
    for start in range(0, total, batch):
        stop = min(start + batch, total)
        _run(work, torch.arange(start, stop) if order is None else order[start:stop])


def _blocks_at_once(work: Work) -> int:
    return max(1, min(_MOST_BLOCKS, work.settings.batch_bytes // max(1, work.kernel.block_bytes)))


def _run(work: Work, blocks: torch.Tensor) -> None:
    """Run these blocks, in one batch if they agree."""
    pending = [blocks]  # last first
    while pending:
        blocks = pending.pop()
        pending.extend(reversed(_attempt(work, blocks)))


def _attempt(work: Work, blocks: torch.Tensor) -> Sequence[torch.Tensor]:
    """Run these blocks at once; if that does not do, undo it and return the batches to run instead."""
    run = Run(
        grid=work.grid,
        blocks=blocks,
        memory=work.memory,
        step_limit=work.settings.step_limit,
        checker=work.checker,
        output=work.output,
    )
    if len(blocks) == 1:
        try:
            work.kernel.function(run, *work.arguments)
        except Exception as err:
            raise FailedBlock(index_in_grid(int(blocks[0]), work.grid), err) from err
        if run.checker is not None:
            run.checker.leave(run.steps)
        return ()
    work.memory.begin(work.settings.batch_bytes)
    try:
        work.kernel.function(run, *work.arguments)
    except Diverge as divergence:
        instead = _one_by_one(blocks) if work.memory.ordered else _split(blocks, divergence.condition)
    except StepLimitExceeded:
        instead = _one_by_one(blocks)  # one block may wait for another
    except Exception:  # a fault, or too little memory for so many blocks
        instead = [blocks[: len(blocks) // 2], blocks[len(blocks) // 2 :]]
    except BaseException:
        work.memory.undo()
        raise
    else:
        work.memory.commit()
        return ()
    work.memory.undo()
    return instead


def _split(blocks: torch.Tensor, condition: torch.Tensor | None) -> Sequence[torch.Tensor]:
    """Groups of blocks that agree about the condition, the group of the first block first."""
    if condition is None or len(condition) != len(blocks):
        return _one_by_one(blocks)
    groups: dict[Any, list[int]] = {}
    for place, value in enumerate(condition.tolist()):
        groups.setdefault(value, []).append(place)
    return [blocks[places] for places in groups.values()]


def _one_by_one(blocks: torch.Tensor) -> Sequence[torch.Tensor]:
    return [blocks[place : place + 1] for place in range(len(blocks))]
