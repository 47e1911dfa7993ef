"""Run control flow, the place of a block in the grid, and assertions."""

from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import torch

from tilewright.interpret.faults import KernelAssertionError
from tilewright.interpret.faults import LaunchError
from tilewright.interpret.run import Diverge
from tilewright.interpret.run import Run
from tilewright.interpret.run import uniform
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.lowering import lowers


def truth(condition: Any) -> bool:
    """The condition of a branch; raises `Diverge` if blocks disagree."""
    return condition if isinstance(condition, bool) else bool(uniform(condition))


def indices(start: Any, stop: Any, step: Any, dtype: torch.dtype) -> Iterable[Any]:
    """What the variable of a `for` loop takes on: ints where all blocks agree, else tensors of `dtype` (blocks,).

    Raises `Diverge` if the blocks do not all run the same number of iterations.
    """
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        _require_positive(step)
        return range(start, stop, step)
    return _indices_by_block(_as_tensor(start), _as_tensor(stop), _as_tensor(step), dtype)


def _indices_by_block(start: torch.Tensor, stop: torch.Tensor, step: torch.Tensor, dtype: torch.dtype) -> Iterator[Any]:
    _require_positive(int(step.min()))
    trips = uniform(torch.div(stop - start + (step - 1), step, rounding_mode="floor").clamp(min=0))
    for trip in range(trips):
        index = start + trip * step
        yield int(index) if len(index) == 1 else index.to(dtype)


def _as_tensor(bound: Any) -> torch.Tensor:
    return torch.as_tensor(bound, dtype=torch.int64).reshape(-1)


def _require_positive(step: int) -> None:
    if step <= 0:
        raise LaunchError(f"the step of a range is {step}; it must be positive")


def captured(value: Any) -> Any:
    """A scalar from outside of the body of a reduction or scan; there it must be one value for all blocks."""
    if isinstance(value, torch.Tensor) and value.numel() > 1:
        raise Diverge
    return value


@lowers("tile_bid", "axis")
def _block_index(op: Any) -> Step:
    axis = op.axis
    return Step(lambda run: run.block_index(axis), (), needs_run=True)


@lowers("tile_num_blocks", "axis")
def _number_of_blocks(op: Any) -> Step:
    axis = op.axis
    return Step(lambda run: run.grid[axis], (), needs_run=True)


@lowers("assert", "message")
def _assertion(op: Any) -> Step:
    message = op.message or "an assertion of the kernel does not hold"

    def require(run: Run, condition: Any) -> None:
        if not (condition if isinstance(condition, bool) else bool(condition.all())):
            if run.checker is None:
                raise KernelAssertionError(message)
            run.checker.assertion(message)

    return Step(require, (op.cond,), needs_run=True)
