"""The values that the entries of a table may take: what a family's `tune.yml` lists, and what the entry has now."""

import itertools
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright.catalogue.data_file import read_data
from tilewright.errors import UsageError

Point = tuple[int, ...]  # for each axis the place of a value in its list


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One field of an entry, or one component of a field that is a tuple, and its values in order."""

    field: str
    component: int | None
    values: tuple[Any, ...]

    def read(self, entry: Mapping[str, Any]) -> Any:
        """The value in an entry."""
        value = entry[self.field]
        return value if self.component is None else value[self.component]


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What a family has to tune."""

    table: str  # name of the table in the kernel file
    by_itemsize: bool  # whether there is a part for each size of an element and architecture
    axes: tuple[Axis, ...]

    @classmethod
    def read(cls, partials: Path, family: str, variant: str = "") -> "Choices":
        """Read the `tune.yml` of a family, in which a variant may have a part of its own.

        Raises:
            UsageError: The family has none.
        """
        path = partials / family / "tune.yml"
        if not path.is_file():
            known = ", ".join(sorted(each.parent.name for each in partials.glob("*/tune.yml")))
            raise UsageError(
                f"the family {family} has no table to tune",
                expected=f"expected an operator of the family {known}",
                hint="edit the constants on top of its kernel file, and time them: tilewright bench",
            )
        data = read_data(path)
        data = data.get("variants", {}).get(variant, data)
        axes = (_axis(str(name), values) for name, values in data["fields"].items())
        return cls(table=data["table"], by_itemsize=data["by_itemsize"], axes=tuple(axes))


def _axis(name: str, values: list[Any]) -> Axis:
    field, bracket, rest = name.partition("[")
    return Axis(field=field, component=int(rest.rstrip("]")) if bracket else None, values=tuple(values))


class Space:
    """All points around one entry: the product of its axes, each with the entry's own value in it."""

    def __init__(self, choices: Choices, entry: Mapping[str, Any]) -> None:
        missing = [axis.field for axis in choices.axes if axis.field not in entry]
        if missing:
            raise UsageError(
                f"an entry of {choices.table} has no {' and no '.join(missing)}",
                expected=f"expected the fields {', '.join(dict.fromkeys(axis.field for axis in choices.axes))}",
                hint="bring the operator up to date: tilewright update",
            )
        self._entry = dict(entry)
        self._axes = [_with(axis, axis.read(entry)) for axis in choices.axes]
        self.start = tuple(axis.values.index(axis.read(entry)) for axis in self._axes)

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def points(self) -> list[Point]:
        """Every point, the entry's own among them."""
        return list(itertools.product(*(range(len(axis.values)) for axis in self._axes)))

    def values(self, point: Point) -> dict[str, Any]:
        """The fields of the entry at a point."""
        found: dict[str, Any] = {}
        for axis, place in zip(self._axes, point, strict=True):
            value = axis.values[place]
            if axis.component is not None:
                whole = list(found.get(axis.field, self._entry[axis.field]))
                whole[axis.component] = value
                value = tuple(whole)
            found[axis.field] = value
        return found

    def find(self, entry: Mapping[str, Any]) -> Point | None:
        """The point with the values of another entry; None where it lies elsewhere."""
        try:
            return tuple(axis.values.index(axis.read(entry)) for axis in self._axes)
        except (KeyError, IndexError, TypeError, ValueError):
            return None

    def neighbours(self, point: Point) -> Iterator[Point]:
        """Points one step away along any axis."""
        for axis in range(len(point)):
            yield from self.along(point, axis)

    def along(self, point: Point, axis: int) -> Iterator[Point]:
        """Points one step away along one axis."""
        for place in (point[axis] + 1, point[axis] - 1):
            if 0 <= place < len(self._axes[axis].values):
                yield (*point[:axis], place, *point[axis + 1 :])

    def distance(self, one: Point, other: Point) -> float:
        """How far apart two points are; the ends of every axis are 1 apart."""
        pairs = zip(one, other, self._axes, strict=True)
        return sum(abs(a - b) / max(1, len(axis.values) - 1) for a, b, axis in pairs)

    def spread(self, seen: list[Point]) -> Iterator[Point]:
        """Further points, each as far as possible from all before it."""
        nearest = {point: min(self.distance(point, each) for each in seen) for point in self.points}
        while any(nearest.values()):
            far = max(nearest, key=lambda point: nearest[point])
            yield far
            nearest = {point: min(found, self.distance(point, far)) for point, found in nearest.items()}


def _with(axis: Axis, value: Any) -> Axis:
    """The axis, with a value that is not in its list put where it belongs, None first."""
    if value in axis.values:
        return axis
    values = sorted((*axis.values, value), key=lambda each: (each is not None, each))
    return Axis(field=axis.field, component=axis.component, values=tuple(values))
