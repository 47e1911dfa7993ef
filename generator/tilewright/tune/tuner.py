"""Tune the entries of an operator's table, one after the other: by measuring, or by what the compiler reports."""

import math
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from itertools import islice
from pathlib import PurePosixPath

from tilewright.aot.compile import Progress
from tilewright.codemod.table import Place
from tilewright.codemod.table import Table
from tilewright.model.tuning import Basis
from tilewright.model.tuning import Trial
from tilewright.model.tuning import TunedEntry
from tilewright.tune.laboratory import Compiled
from tilewright.tune.laboratory import Laboratory
from tilewright.tune.laboratory import Size
from tilewright.tune.search import search
from tilewright.tune.space import Choices
from tilewright.tune.space import Point
from tilewright.tune.space import Space

SHORT, LONG = 15, 100  # milliseconds of measuring: to tell good from bad, to tell good from better
_FINALISTS = 3
_SLOW = 2.0  # times the best time of a size, at which a candidate is given up
_WORTH_IT = 1.01  # how much faster a candidate must be to be taken
_PROBES = 6  # candidates by which an entry shows that it is used


@dataclass
class _Work:
    """One entry while it is tuned."""

    table: Table
    index: int
    space: Space
    trials: dict[Point, Trial] = field(default_factory=dict)

    @property
    def without(self) -> str | None:
        """The kernel file without the entry, where there are others to take its place."""
        return self.table.removed(self.index)

    def text(self, point: Point) -> str:
        """The kernel file with the entry at a point."""
        if point == self.space.start:
            return self.table.text
        return self.table.replaced(self.index, self.space.values(point))


class Tuner:
    """One architecture, dtype and set of sizes."""

    def __init__(
        self,
        laboratory: Laboratory,
        choices: Choices,
        place: Place,
        *,
        path: PurePosixPath,
        dtype: str,
        sizes: Sequence[Size],
        exhaustive: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self._laboratory = laboratory
        self._choices = choices
        self._place = place
        self._path = path
        self._dtype = dtype
        self._sizes = [list(size) for size in sizes]
        self._exhaustive = exhaustive
        self._progress = progress
        self._tried = 0
        self._best: dict[tuple[int, ...], float] = {}  # milliseconds of the fastest candidate so far, by size

    def measured(self, text: str) -> tuple[str, list[TunedEntry]]:
        """The kernel file with what is fastest, and how each entry came to its values."""
        return self._each(text, self._measure_entry)

    def compiled(self, text: str) -> tuple[str, list[TunedEntry]]:
        """The kernel file with entries that fit into registers and shared memory, near what they are."""
        return self._each(text, self._settle_entry)

    def _each(self, text: str, tune: Callable[[_Work], tuple[Point, TunedEntry]]) -> tuple[str, list[TunedEntry]]:
        found = []
        for index in range(len(self._table(text).entries)):
            table = self._table(text)
            space = Space(self._choices, table.entries[index].values)
            work = _Work(table, index, space)
            point, entry = tune(work)
            text = work.text(point)
            found.append(entry)
        return text, found

    def _table(self, text: str) -> Table:
        return Table(text, self._place, path=self._path)

    def _measure_entry(self, work: _Work) -> tuple[Point, TunedEntry]:
        begun = time.perf_counter()
        space = work.space
        if not self._is_used(work):
            return space.start, self._entry(work, space.start, "unused", begun)
        if self._exhaustive:
            self._costs(work, space.points, LONG)
            ranking = [point for point in space.points if work.trials[point].verdict == "ok"]
        else:
            known = [point for point in map(space.find, work.table.relatives) if point]
            ranking = search(space, lambda points: self._costs(work, points, SHORT), known)
            ranking = ranking[: min(_FINALISTS, ranking.index(space.start) if space.start in ranking else _FINALISTS)]
        if not ranking:
            return space.start, self._entry(work, space.start, "measured", begun)
        finalists = list(dict.fromkeys([space.start, *ranking]))
        costs = dict(zip(finalists, self._costs(work, finalists, LONG), strict=True))
        before = costs[space.start]
        note = ""
        for point in sorted((p for p, cost in costs.items() if cost is not None), key=lambda p: costs[p] or 0.0):
            cost = costs[point]
            assert cost is not None
            if before is not None and math.exp(before - cost) < _WORTH_IT:
                break
            wrong = self._laboratory.check(work.text(point), self._dtype)
            if not wrong:
                return point, self._entry(work, point, "measured", begun, note=note)
            note = f"{space.values(point)} was faster, and is wrong: {wrong}"
        return space.start, self._entry(work, space.start, "measured", begun, note=note)

    def _is_used(self, work: _Work) -> bool:
        """Whether other values of the entry lead to other launches on some size, as far as some probes show."""
        probes = [work.space.start, *islice(work.space.spread([work.space.start]), _PROBES)]
        found = [each for each in self._launches(map(work.text, probes)) if each]
        return len({*found, self._instead(work)} - {()}) > 1 or len(found) < 2

    def _instead(self, work: _Work) -> tuple[str, ...]:
        """What is launched where the entry is not there; nothing where it cannot be taken away."""
        return () if work.without is None else self._launches([work.without])[0]

    def _launches(self, texts: Iterable[str]) -> list[tuple[str, ...]]:
        return self._laboratory.launches(list(texts), self._sizes, self._dtype)

    def _compile(self, work: _Work, points: Sequence[Point]) -> Iterator[Compiled]:
        return self._laboratory.compile([work.text(point) for point in points], self._sizes, self._dtype)

    def _costs(self, work: _Work, points: Sequence[Point], effort: int) -> list[float | None]:
        """Mean logarithm of the times on all sizes, for each point that works: some are timed while others compile."""
        compiled = self._compile(work, [work.space.start, *points])
        start, instead = next(compiled), self._instead(work)
        neighbours = (work.text(near) for point in points for near in work.space.neighbours(point))
        costs = []
        for point, found in zip(points, compiled, strict=True):
            self._laboratory.prepare(neighbours, self._sizes, self._dtype)
            if found.launches and found.launches == instead and point != work.space.start:
                trial = Trial(
                    values=work.space.values(point), verdict="unused", error="another entry is launched instead"
                )
            else:
                trial = self._try(work, point, found, most_spilled=start.spilled, effort=effort)
            work.trials[point] = trial
            self._tried += 1
            if self._progress:
                self._progress(self._tried, 0)
            times = trial.milliseconds.values()
            costs.append(sum(map(math.log, times)) / len(times) if trial.verdict == "ok" else None)
        return costs

    def _try(self, work: _Work, point: Point, found: Compiled, *, most_spilled: int, effort: int) -> Trial:
        values = work.space.values(point)
        if found.error:
            return Trial(values=values, verdict="pruned", error=found.error)
        if found.spilled > most_spilled:
            return Trial(values=values, verdict="pruned", error=f"spills {found.spilled} bytes")
        times: dict[str, float] = {}
        for size, key in zip(self._sizes, found.keys, strict=True):
            timed = self._laboratory.time(work.text(point), key, size, self._dtype, effort)
            if timed.milliseconds is None:
                return Trial(values=values, verdict="failed", error=timed.error, milliseconds=times)
            shape = "x".join(map(str, size))
            times[shape] = timed.milliseconds
            best = self._best[tuple(size)] = min(timed.milliseconds, self._best.get(tuple(size), math.inf))
            if effort == SHORT and point != work.space.start and timed.milliseconds > _SLOW * best:
                return Trial(values=values, verdict="slow", error=f"too slow on {shape}", milliseconds=times)
        return Trial(values=values, verdict="ok", milliseconds=times)

    def _settle_entry(self, work: _Work) -> tuple[Point, TunedEntry]:
        begun = time.perf_counter()
        space = work.space
        start, *others = sorted(space.points, key=lambda point: space.distance(space.start, point))
        for points in ([start], *(others[place : place + _PROBES] for place in range(0, len(others), _PROBES))):
            for point, found in zip(points, self._compile(work, points), strict=True):
                error = found.error or (f"spills {found.spilled} bytes" if found.spilled else "")
                work.trials[point] = Trial(values=space.values(point), verdict="pruned" if error else "ok", error=error)
                if not error:
                    return point, self._entry(work, point, "compiled", begun)
        note = "nothing in the space fits: it is left as it is"
        return space.start, self._entry(work, space.start, "compiled", begun, note=note)

    def _entry(self, work: _Work, point: Point, basis: Basis, begun: float, *, note: str = "") -> TunedEntry:
        space = work.space
        before, after = (work.trials.get(each) for each in (space.start, point))
        return TunedEntry(
            label=work.table.entries[work.index].label,
            arch=self._place.arch,
            dtype=self._dtype,
            basis=basis,
            before=space.values(space.start),
            after=space.values(point),
            space=len(space),
            trials=tuple(work.trials.values()),
            gain=_gain(before, after) if before and after else None,
            seconds=round(time.perf_counter() - begun, 3),
            note=note,
        )


def _gain(before: Trial, after: Trial) -> float | None:
    """How much faster, over the sizes on which it makes a difference."""
    if not before.milliseconds or before.milliseconds.keys() != after.milliseconds.keys():
        return None
    ratios = [before.milliseconds[size] / after.milliseconds[size] for size in before.milliseconds]
    changed = [ratio for ratio in ratios if ratio != 1.0]
    return math.exp(sum(map(math.log, changed)) / len(changed)) - 1 if changed else 0.0
