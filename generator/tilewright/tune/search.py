"""Find a good point of a space with few measurements: some known or spread out, then along the axes from the best."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from itertools import chain
from itertools import islice

from tilewright.tune.space import Point
from tilewright.tune.space import Space

FRACTION = 8  # one point in so many is measured
FEWEST = 8
_KNOWN = 2  # one in so many of these may be of those that are known to be good elsewhere
_SPREAD = 5  # and one is spread out over the space, before the best of them is improved
_RUNNERS_UP = 3  # whose neighbours are looked at once nothing improves the best point
Measure = Callable[[Sequence[Point]], Sequence[float | None]]  # the cost of each point; None: it does not work


def search(space: Space, measure: Measure, known: Iterable[Point] = ()) -> list[Point]:
    """Points that work, the best first, of those that were measured.

    Args:
        space: Where to search; its start is measured first.
        measure: Costs of several points at once, so that they can be compiled side by side.
        known: Points that are good for other sizes or on other architectures, the likelier ones first.
    """
    tried = _Tried(measure, budget=min(len(space), max(FEWEST, len(space) // FRACTION)))
    elsewhere = [point for point in dict.fromkeys(known) if point != space.start][: tried.left // _KNOWN]
    first = [space.start, *elsewhere]
    tried.look([*first, *islice(space.spread(first), tried.left // _SPREAD)])
    while tried.left:
        _descend(space, tried)
        runners_up = tried.ranked()[:_RUNNERS_UP]
        further = chain(*map(space.neighbours, runners_up), space.spread(list(tried.costs)))
        tried.look(islice((point for point in further if point not in tried.costs), 2))
    return tried.ranked()


def _descend(space: Space, tried: "_Tried") -> None:
    """Go from the best point along one axis after the other, for as long as something gets better."""
    better = True
    while better:
        better = False
        for axis in range(len(space.start)):
            while (best := tried.best) and tried.left:
                tried.look(space.along(best, axis))
                if tried.best == best:
                    break
                better = True


class _Tried:
    """Points that were measured, until there are as many as may be."""

    def __init__(self, measure: Measure, *, budget: int) -> None:
        self.costs: dict[Point, float | None] = {}
        self._measure = measure
        self._budget = budget

    @property
    def left(self) -> int:
        """How many more may be measured."""
        return self._budget - len(self.costs)

    @property
    def best(self) -> Point | None:
        """The best point that works."""
        return next(iter(self.ranked()), None)

    def look(self, points: Iterable[Point]) -> None:
        """Measure those that are new."""
        fresh = [point for point in dict.fromkeys(points) if point not in self.costs][: self.left]
        if fresh:
            self.costs.update(zip(fresh, self._measure(fresh), strict=True))

    def ranked(self) -> list[Point]:
        """Points that work, the best first."""
        working = {point: cost for point, cost in self.costs.items() if cost is not None}
        return sorted(working, key=lambda point: working[point])
