"""The state of blocks that run at once, and what they do when they disagree."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING
from typing import Any
from typing import TypeAlias

import torch

from tilewright.interpret.faults import Location
from tilewright.interpret.faults import StepLimitExceeded

if TYPE_CHECKING:
    from tilewright.interpret.check.checker import Checker
    from tilewright.interpret.memory.allocations import Memory

Grid: TypeAlias = tuple[int, int, int]

LOCATIONS = "__locations__"  # global of translated kernels: location by line


def print_text(text: str) -> None:
    """Write to what standard output is at the time."""
    print(text, end="")


class Diverge(Exception):
    """Blocks disagree about what must be one value: the batch is undone, split and run again.

    `condition` has one value for each block, by which the batch is split; without one the blocks run one by one.
    """

    def __init__(self, condition: torch.Tensor | None = None) -> None:
        super().__init__()
        self.condition = condition


class _Steps:
    """Iterations of loops that a batch may still take, all parts of it together."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit


class Run:
    """State of the blocks that run at once."""

    __slots__ = ("_indices", "_steps", "blocks", "checker", "grid", "memory", "output", "size")

    def __init__(
        self,
        *,
        grid: Grid,
        blocks: torch.Tensor,
        memory: Memory,
        step_limit: int,
        checker: Checker | None = None,
        output: Callable[[str], object] = print_text,
    ) -> None:
        """`blocks` are linear indices in the grid, x fastest: int64 of shape (size,)."""
        self.grid = grid
        self.blocks = blocks
        self.size = len(blocks)
        self.memory = memory
        self.checker = checker
        self.output = output
        self._steps = _Steps(step_limit)
        self._indices: dict[int, int | torch.Tensor] = {}

    def part(self, places: torch.Tensor) -> Run:
        """Some of the blocks alone, by their places in `blocks`; they share the limit of steps."""
        part = copy.copy(self)
        part.blocks = self.blocks[places]
        part.size = len(places)
        part._indices = {}
        return part

    def block_index(self, axis: int) -> int | torch.Tensor:
        """Index of the blocks along an axis: an int if it is the same for all, else int32 of shape (size,)."""
        index = self._indices.get(axis)
        if index is None:
            index = self._indices[axis] = self._block_index(axis)
        return index

    def _block_index(self, axis: int) -> int | torch.Tensor:
        if self.grid[axis] == 1:
            return 0
        x, y, _ = self.grid
        index = self.blocks // (1, x, x * y)[axis] % self.grid[axis]
        first = int(index[0])
        return first if self.size == 1 or bool((index == first).all()) else index.to(torch.int32)

    @property
    def steps(self) -> int:
        """Iterations of loops so far."""
        return self._steps.limit - self._steps.left

    def count_step(self) -> None:
        """Count one iteration of a loop; raises `StepLimitExceeded` beyond the limit."""
        self._steps.left -= 1
        if self._steps.left < 0:
            raise StepLimitExceeded(
                f"a block does not end within {self._steps.limit} iterations of its loops\n"
                "blocks run one after another: one that waits for a later one waits forever"
            )


def index_in_grid(block: int, grid: Grid) -> tuple[int, int, int]:
    """Index along each axis of a block, given its linear index."""
    x, y, _ = grid
    return block % x, block // x % y, block // (x * y)


def uniform(value: Any) -> Any:
    """The int or bool that all blocks have here; raises `Diverge` if they have several."""
    if not isinstance(value, torch.Tensor):
        return value
    flat = value.reshape(-1)
    if len(flat) > 1 and not bool((flat == flat[0]).all()):
        raise Diverge(flat)
    return flat[0].item()


def agreeing(condition: torch.Tensor) -> list[torch.Tensor]:
    """Places of the blocks that have one value of the condition (blocks,), in order, those of the first block first."""
    _, kinds = torch.unique(condition, return_inverse=True)
    groups = torch.split(kinds.argsort(stable=True), torch.bincount(kinds).tolist())
    return sorted(groups, key=lambda places: int(places[0]))


def current_location() -> Location | None:
    """The place in the kernel that runs now in this thread, None outside of one."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if LOCATIONS in frame.f_globals:
            location: Location | None = frame.f_globals[LOCATIONS].get(frame.f_lineno)
            return location
        frame = frame.f_back
    return None
