"""The search finds what an exhaustive one would, with a part of its measurements."""

import json
import math
import random
from pathlib import Path
from pathlib import PurePosixPath

import pytest

from tilewright.codemod.table import Place
from tilewright.codemod.table import Table
from tilewright.errors import UsageError
from tilewright.tune.search import search
from tilewright.tune.space import Axis
from tilewright.tune.space import Choices
from tilewright.tune.space import Space

TILES = Choices(
    table="CONFIGS",
    by_itemsize=True,
    axes=(
        Axis(field="tile", component=0, values=(16, 64, 128, 256)),
        Axis(field="tile", component=1, values=(64, 128, 256)),
        Axis(field="tile", component=2, values=(32, 64, 128)),
        Axis(field="ctas", component=None, values=(1, 2)),
        Axis(field="persistent", component=None, values=(False, True)),
    ),
)
ENTRY = {"tile": (128, 128, 64), "ctas": 1, "persistent": False}


HINTS = Choices(
    table="HINTS",
    by_itemsize=False,
    axes=(
        Axis(field="occupancy", component=None, values=(1, 2, 3, 4, 5, 6, 8, 12, 16)),
        Axis(field="warps", component=None, values=(4, 8)),
    ),
)


def landscape(choices, seed):
    """Costs with an optimum anywhere, axes that depend on each other, noise, and large tiles that do not fit."""
    chance = random.Random(seed)
    sizes = [len(axis.values) for axis in choices.axes]
    optimum = [chance.randrange(size) for size in sizes]
    weights = [chance.uniform(0.1, 0.7) for _ in sizes]
    pairs = {(i, j): chance.uniform(-0.4, 0.4) for i in range(len(sizes)) for j in range(i)}
    noise = {}

    def cost(point):
        spots = [place / (size - 1) for place, size in zip(point, sizes, strict=True)]
        if len(spots) == 5 and spots[0] + spots[1] + spots[2] / 2 > 1.8 + spots[3] / 2:
            return None
        away = [(place - best) / (size - 1) for place, best, size in zip(point, optimum, sizes, strict=True)]
        noise.setdefault(point, chance.gauss(0, 0.01))
        single = sum(weight * abs(far) ** 1.3 for weight, far in zip(weights, away, strict=True))
        return single + sum(weight * away[i] * away[j] for (i, j), weight in pairs.items()) + noise[point]

    return cost


@pytest.mark.parametrize(("choices", "most"), [(TILES, 24), (HINTS, 8)], ids=["of 144", "of 18"])
def test_within_three_per_cent_with_few_measurements(choices, most):
    space = Space(choices, ENTRY | {"occupancy": 4, "warps": 8})
    close, measured = 0, 0
    for seed in range(100):
        cost = landscape(choices, seed)
        costs = {point: cost(point) for point in space.points}
        seen = set()

        def measure(points, costs=costs, seen=seen):
            seen.update(points)
            return [costs[point] for point in points]

        found = search(space, measure)[0]
        best = min(each for each in costs.values() if each is not None)
        close += math.exp(costs[found] - best) < 1.03
        measured = max(measured, len(seen))
    assert measured <= most
    assert close >= 85


LANDSCAPES = json.loads((Path(__file__).parent / "landscapes.json").read_text())
ROOT = Path(__file__).parents[2]


def entries(operator, choices):
    """What the operator's table has for other architectures than sm_90."""
    path = PurePosixPath("reference_ops", operator, "cutile.py")
    text = (ROOT / path).read_text()
    places = [
        Place(name=choices.table, arch=arch, itemsize=2 if choices.by_itemsize else None)
        for arch in ("sm_100", "sm_80", "sm_120")
    ]
    return [entry.values for place in places for entry in Table(text, place, path=path).entries]


@pytest.mark.parametrize(
    ("operator", "family", "most"),
    [("matmul", "matmul", 18), ("attention", "attention", 12), ("rms_norm", "row_norm", 8)],
)
def test_best_of_what_was_measured_is_found_from_anywhere(operator, family, most):
    """Every candidate was measured on an H200, and what the table has for sm_90 is not known."""
    landscape = LANDSCAPES[operator]
    choices = Choices.read(ROOT / "template" / "_partials", family, operator)
    measured = {json.dumps(values): ms for *values, ms in landscape["trials"]}
    best = min(ms for ms in measured.values() if ms)
    known = entries(operator, choices)
    for *start, ms in landscape["trials"]:
        if ms is None:
            continue
        space = Space(choices, landscape["entry"] | dict(zip(landscape["fields"], start, strict=True)))
        seen = set()

        def measure(points, space=space, seen=seen):
            seen.update(points)
            found = [measured[json.dumps(list(space.values(point).values()))] for point in points]
            return [ms and math.log(ms) for ms in found]

        winner = search(space, measure, filter(None, map(space.find, known)))[0]
        assert measured[json.dumps(list(space.values(winner).values()))] < 1.03 * best
        assert len(seen) <= most


def test_nothing_that_works_ends_the_search():
    space = Space(TILES, ENTRY)
    assert search(space, lambda points: [None] * len(points)) == []


def test_small_space_is_searched_whole():
    choices = Choices(table="HINTS", by_itemsize=False, axes=(Axis(field="warps", component=None, values=(4, 8)),))
    space = Space(choices, {"warps": 4})
    assert search(space, lambda points: [-sum(point) for point in points]) == [(1,), (0,)]


def test_value_of_the_entry_is_in_its_space():
    space = Space(TILES, ENTRY | {"tile": (96, 128, 64)})
    assert space.values(space.start) == ENTRY | {"tile": (96, 128, 64)}
    assert len(space) == 5 * 3 * 3 * 2 * 2
    ahead, behind = space.along(space.start, 0)
    assert (space.values(ahead)["tile"], space.values(behind)["tile"]) == ((128, 128, 64), (64, 128, 64))


def test_value_that_leaves_the_choice_to_the_compiler():
    choices = Choices(table="HINTS", by_itemsize=False, axes=(Axis(field="occupancy", component=None, values=(1, 2)),))
    space = Space(choices, {"occupancy": None})
    assert [space.values(point)["occupancy"] for point in space.points] == [None, 1, 2]


def test_entry_without_a_field():
    with pytest.raises(UsageError, match="an entry of CONFIGS has no ctas and no persistent"):
        Space(TILES, {"tile": (128, 128, 64)})
