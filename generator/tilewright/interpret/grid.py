"""Run a translated kernel over its grid: many blocks at once, fewer where they disagree.

A batch whose blocks disagree about control flow is undone and split by what they disagree about; one that fails is
undone and halved, until the first block that fails runs alone and its error names it. One that takes many iterations is
undone until its first block has ended alone, so that kernels that never end are found without waiting for all blocks.
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
from tilewright.interpret.run import agreeing
from tilewright.interpret.run import index_in_grid
from tilewright.interpret.run import print_text
from tilewright.interpret.settings import Settings
from tilewright.interpret.translate.kernel import TranslatedKernel

if TYPE_CHECKING:
    from tilewright.interpret.check.checker import Checker

_MOST_BLOCKS = 2**16  # at once, of kernels that compute with scalars only
_FIRST_STEPS = 2**12  # of a large batch, after which its first block has to show that it ends at all
_FIRST_BLOCK_STEPS = 2**22  # of all blocks of a smaller one
_MORE_STEPS = 8  # times those before, when it has


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


@dataclass(frozen=True, slots=True)
class _Batch:
    """Blocks that run at once, and the iterations of loops that they may take."""

    blocks: torch.Tensor
    steps: int


def _run(work: Work, blocks: torch.Tensor) -> None:
    """Run these blocks, in one batch if they agree."""
    pending = [_Batch(blocks, max(_FIRST_STEPS, _FIRST_BLOCK_STEPS // len(blocks)))]  # last first
    while pending:
        pending.extend(reversed(_attempt(work, pending.pop())))


def _attempt(work: Work, batch: _Batch) -> Sequence[_Batch]:
    """Run these blocks at once; if that does not do, undo it and return the batches to run instead."""
    blocks, most = batch.blocks, work.settings.step_limit
    run = Run(
        grid=work.grid,
        blocks=blocks,
        memory=work.memory,
        step_limit=most if len(blocks) == 1 else min(most, batch.steps),
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
    steps = batch.steps
    work.memory.begin(work.settings.batch_bytes)
    try:
        work.kernel.function(run, *work.arguments)
    except Diverge as divergence:
        instead = _one_by_one(blocks) if work.memory.ordered else _split(blocks, divergence.condition)
    except StepLimitExceeded:
        waits = work.memory.ordered or steps >= most  # one block may wait for another
        instead = _one_by_one(blocks) if waits else [blocks[:1], blocks[1:]]
        steps *= _MORE_STEPS
    except Exception:  # a fault, or too little memory for so many blocks
        instead = [blocks[: len(blocks) // 2], blocks[len(blocks) // 2 :]]
    except BaseException:
        work.memory.undo()
        raise
    else:
        work.memory.commit()
        return ()
    work.memory.undo()
    return [_Batch(each, steps) for each in instead]


def _split(blocks: torch.Tensor, condition: torch.Tensor | None) -> Sequence[torch.Tensor]:
    """Groups of blocks that agree about the condition, the group of the first block first."""
    if condition is None or len(condition) != len(blocks):
        return _one_by_one(blocks)
    return [blocks[places] for places in agreeing(condition)]


def _one_by_one(blocks: torch.Tensor) -> Sequence[torch.Tensor]:
    return [blocks[place : place + 1] for place in range(len(blocks))]
