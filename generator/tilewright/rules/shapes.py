"""Shapes of tiles: broadcasting, reshaping, and what becomes of the padding along each axis."""

from collections.abc import Sequence as Items
from dataclasses import replace

from tilewright.rules.symbols import Polynomial
from tilewright.rules.symbols import integer
from tilewright.rules.values import Axis
from tilewright.rules.values import Scalar
from tilewright.rules.values import Sequence
from tilewright.rules.values import Tile
from tilewright.rules.values import Value

Shape = tuple[Polynomial | None, ...]
_ONE = integer(1)


def shape_of(value: Value | None) -> Shape | None:
    """The shape that an argument says: a tuple of integers, or one integer."""
    if isinstance(value, Sequence):
        return tuple(each.number if isinstance(each, Scalar) else None for each in value.items)
    return (value.number,) if isinstance(value, Scalar) and value.number is not None else None


def integers_of(value: Value | None) -> tuple[int, ...] | None:
    """Known integers, as of `axes=(1, 0)`."""
    shape = shape_of(value)
    numbers = [each.number for each in shape if each is not None] if shape is not None else []
    known = [number for number in numbers if number is not None]
    return tuple(known) if shape is not None and len(known) == len(shape) else None


def broadcast(values: Items[Value]) -> Shape | None:
    """The common shape of tiles and numbers, or None where one is not known."""
    shapes: list[Shape] = []
    for value in values:
        if isinstance(value, Scalar):
            continue
        if not isinstance(value, Tile) or value.shape is None:
            return None
        shapes.append(value.shape)
    rank = max(map(len, shapes), default=0)
    result: list[Polynomial | None] = []
    for place in range(-rank, 0):
        sizes = {shape[place] for shape in shapes if -place <= len(shape)} - {_ONE}
        result.append(sizes.pop() if len(sizes) == 1 else None if sizes else _ONE)
    return tuple(result)


def reshaped(tile: Tile, shape: Shape | None) -> Tile:
    """The same elements in another shape; padding is followed where axes of one element come or go, or one is split."""
    known = replace(tile, summed=(), maximum_of=None)
    if shape is None:
        return replace(known, shape=None, axes=(), element=None)
    if tile.shape is None:
        return replace(known, shape=_without_rest(shape), axes=(None,) * len(shape), element=None)
    before = [(size, axis) for size, axis in zip(tile.shape, tile.axes, strict=True) if size != _ONE]
    if sum(size is not None and size.number == -1 for size in shape) == 1:
        rest = [size for size, _ in before]
        for size in shape:
            if size in rest:
                rest.remove(size)
        shape = tuple((rest[0] if len(rest) == 1 else None) if size == integer(-1) else size for size in shape)
    after = [size for size in shape if size != _ONE]
    if [size for size, _ in before] != after or None in after:
        return replace(known, shape=shape, axes=_regrouped(before, shape), element=None)
    remaining = iter(before)
    axes = tuple(None if size == _ONE else next(remaining)[1] for size in shape)
    return replace(known, shape=shape, axes=axes)


def _regrouped(before: list[tuple[Polynomial | None, Axis]], shape: Shape) -> tuple[Axis, ...]:
    """What lies outside where one axis becomes several: along each of those, what lay outside along the one."""
    sizes = [size for size, _ in before]
    split = [(size, axis) for size, axis in before if size not in shape]
    parts = [size for size in shape if size not in sizes and size != _ONE]
    if len(split) != 1 or len(parts) < 2 or None in sizes or None in shape or len(sizes) + len(parts) - 1 != len(shape):
        return (None,) * len(shape)
    return tuple(split[0][1] if size in parts else None for size in shape)


def _without_rest(shape: Shape) -> Shape:
    return tuple(None if size is not None and size.number == -1 else size for size in shape)


def permuted(tile: Tile, order: tuple[int, ...] | None) -> Tile:
    """Axes in another order."""
    known = replace(tile, summed=(), maximum_of=None)
    if tile.shape is None or order is None or len(order) != len(tile.shape):
        shape = None if tile.shape is None else (None,) * len(tile.shape)
        return replace(known, shape=shape, axes=(None,) * len(shape or ()), element=None)
    if not all(-len(order) <= place < len(order) for place in order):
        return Tile(dtype=tile.dtype)
    return replace(
        known, shape=tuple(tile.shape[place] for place in order), axes=tuple(tile.axes[place] for place in order)
    )


def transposed(tile: Tile, first: Value | None, second: Value | None) -> Tile:
    """Two axes exchanged; those of a matrix where none are given."""
    if tile.shape is None:
        return permuted(tile, None)
    rank = len(tile.shape)
    places = [each.number.number if isinstance(each, Scalar) and each.number else None for each in (first, second)]
    if isinstance(first, Scalar) and first.literal == 0:
        places[0] = 0
    if isinstance(second, Scalar) and second.literal == 0:
        places[1] = 0
    if first is None and second is None and rank == 2:
        places = [0, 1]
    a, b = places
    if a is None or b is None or not (-rank <= a < rank and -rank <= b < rank):
        return permuted(tile, None)
    order = list(range(rank))
    order[a], order[b] = order[b], order[a]
    return permuted(tile, tuple(order))


def expanded(tile: Tile, place: int | None) -> Tile:
    """A new axis of one element before `place`."""
    if tile.shape is None or place is None or not -len(tile.shape) - 1 <= place <= len(tile.shape):
        return replace(tile, shape=None, axes=(), summed=(), maximum_of=None)
    place = place if place >= 0 else place + len(tile.shape) + 1
    return replace(
        tile,
        shape=(*tile.shape[:place], _ONE, *tile.shape[place:]),
        axes=(*tile.axes[:place], None, *tile.axes[place:]),
        summed=(),
        maximum_of=None,
    )


def reduced(tile: Tile, axis: Value | None, *, keepdims: bool) -> tuple[Tile, tuple[int, ...]] | None:
    """The shape without the axes that are reduced, and which those are; None where they are not known."""
    if tile.shape is None:
        return None
    rank = len(tile.shape)
    if axis is None or (isinstance(axis, Scalar) and axis.literal == "None"):
        places = tuple(range(rank))
    else:
        given = integers_of(axis)
        if given is None or not all(-rank <= each < rank for each in given):
            return None
        places = tuple(sorted(each % rank for each in given))
    shape: list[Polynomial | None] = []
    axes: list[Axis] = []
    for place, (size, outside) in enumerate(zip(tile.shape, tile.axes, strict=True)):
        if place not in places:
            shape.append(size)
            axes.append(outside)
        elif keepdims:
            shape.append(_ONE)
            axes.append(None)
    return Tile(shape=tuple(shape), axes=tuple(axes), dtype=tile.dtype), places
