"""Run the loops of a kernel: blocks that disagree in an iteration run it in parts, and go on together behind it.

Blocks that leave a loop wait behind it for the others, so that an iteration costs what those cost that are inside. What
an iteration did before blocks disagreed is undone.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from typing import TypeAlias

import torch
from torch import Tensor

from tilewright.interpret.memory.arrays import ArrayValue
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.dtypes import as_tensor
from tilewright.interpret.run import Diverge
from tilewright.interpret.run import Run
from tilewright.interpret.run import agreeing


class Exit(enum.Enum):
    """How control flow leaves a piece of a kernel that is a function of its own."""

    END = enum.auto()  # at its end, with its results
    CONTINUE = enum.auto()  # to the next iteration of the loop around it, with what that takes
    BREAK = enum.auto()  # to what follows the loop around it, with the results of the loop
    RETURN = enum.auto()  # to the end of the kernel


Values: TypeAlias = tuple[Any, ...]
Body: TypeAlias = Callable[..., tuple[Exit, Values]]
_ENDLESS: Iterable[Values] = itertools.repeat(())


@dataclass(frozen=True, slots=True)
class _Part:
    """Blocks that went the same way, by their places in a batch, in order, and where they went with which values."""

    places: Tensor
    exit: Exit
    values: Values


def loop(
    run: Run,
    body: Body,
    carried: Values,
    outer: Values,
    elements: Sequence[Element],
    indices: Iterable[Any] | None = None,
) -> tuple[Exit, Values]:
    """Run a loop, an iteration as `body(run, [index,] *carried, *outer)`, until all blocks have left it.

    `carried` is what the first iteration takes, of these `elements`; `outer` is what every one takes. Returns END with
    the results of the loop, or RETURN. Raises `Diverge` if blocks disagree about which of the two, or about what parts
    of a batch cannot mend either, and `StepLimitExceeded`.
    """
    inside, places, around = run, torch.arange(run.size), outer
    left: list[_Part] = []
    for index in _ENDLESS if indices is None else ((each,) for each in indices):
        run.count_step()
        now = index if inside is run else _rows(index, places, run.size)
        parts = _iteration(inside, places, body, (*now, *carried, *around))
        left += [part for part in parts if part.exit is not Exit.CONTINUE]
        staying = [part for part in parts if part.exit is Exit.CONTINUE]
        if not staying:
            break
        joined = _joined(staying, elements)
        carried = joined.values
        if len(joined.places) < inside.size:
            places = joined.places
            inside, around = run.part(places), _rows(outer, places, run.size)
    else:
        left.append(_Part(places, Exit.BREAK, carried))
    return _outcome(run, left, elements)


def _iteration(run: Run, places: Tensor, body: Body, arguments: Values) -> list[_Part]:
    """Run an iteration, in as many parts as needed; `places` are those of the blocks of `run` in the batch."""
    mark = run.memory.mark()
    try:
        return [_Part(places, *body(run, *arguments))]
    except Diverge as divergence:
        condition = divergence.condition
        if condition is None or len(condition) != run.size or run.memory.ordered:
            raise Diverge from None
    run.memory.go_back(mark)
    return [
        part
        for chosen in agreeing(condition)
        for part in _iteration(run.part(chosen), places[chosen], body, _rows(arguments, chosen, run.size))
    ]


def _outcome(run: Run, left: list[_Part], elements: Sequence[Element]) -> tuple[Exit, Values]:
    """How a loop ends that the blocks left in these parts."""
    if len({part.exit for part in left}) > 1:
        returned = torch.zeros(run.size, dtype=torch.bool)
        for part in left:
            returned[part.places] = part.exit is Exit.RETURN
        raise Diverge(returned)
    joined = _joined(left, elements)
    return (Exit.RETURN if joined.exit is Exit.RETURN else Exit.END), joined.values


def _joined(parts: list[_Part], elements: Sequence[Element]) -> _Part:
    """Parts that went the same way, as one."""
    if len(parts) == 1:
        return parts[0]
    places, order = torch.cat([part.places for part in parts]).sort()
    sizes = [len(part.places) for part in parts]
    columns = zip(*(part.values for part in parts), strict=True)
    values = (_column(column, sizes, order, element) for column, element in zip(columns, elements, strict=False))
    return _Part(places, parts[0].exit, tuple(values))


def _column(values: Sequence[Any], sizes: Sequence[int], order: Tensor, element: Element) -> Any:
    """What the blocks of all parts have for one variable, given what those of each part have."""
    if all(not isinstance(value, Tensor) and value == values[0] for value in values):
        return values[0]
    if not all(isinstance(value, Tensor | int) for value in values):
        raise Diverge  # lists of arrays, from which blocks cannot choose
    tiles = (as_tensor(value, element) for value in values)
    spread = [tile.expand(size, *tile.shape[1:]) for tile, size in zip(tiles, sizes, strict=True)]
    return torch.cat(spread)[order]


def _rows(value: Any, places: Tensor, size: int) -> Any:
    """What the blocks at these places have of a value of a batch of `size` blocks."""
    if isinstance(value, Tensor):
        return value.index_select(0, places) if len(value) == size else value
    if isinstance(value, tuple):
        return tuple(_rows(each, places, size) for each in value)
    if isinstance(value, ArrayValue):
        return ArrayValue(*_rows((value.address, value.shape, value.strides), places, size))
    return value
