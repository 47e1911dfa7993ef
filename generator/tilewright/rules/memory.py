"""What loads and gathers give: a tile, and what lies beyond the end of the array."""

import ast
from collections.abc import Mapping

from tilewright.rules.overhang import Launches
from tilewright.rules.overhang import evidence
from tilewright.rules.padding import number_of
from tilewright.rules.shapes import Shape
from tilewright.rules.shapes import broadcast
from tilewright.rules.shapes import shape_of
from tilewright.rules.symbols import Polynomial
from tilewright.rules.symbols import integer
from tilewright.rules.symbols import rounded_up
from tilewright.rules.symbols import unknown
from tilewright.rules.values import UNKNOWN
from tilewright.rules.values import Array
from tilewright.rules.values import Axis
from tilewright.rules.values import Named
from tilewright.rules.values import Outside
from tilewright.rules.values import Padding
from tilewright.rules.values import Scalar
from tilewright.rules.values import Sequence
from tilewright.rules.values import Tile
from tilewright.rules.values import Value
from tilewright.rules.values import integer_scalar

_MODES = {"ZERO": 0.0, "NEG_ZERO": -0.0, "NEG_INF": float("-inf"), "POS_INF": float("inf"), "NAN": float("nan")}
Values = Mapping[str, Value]


def loaded(values: Values, node: ast.Call, launches: Launches, *, guarded: bool) -> Value:
    """`ct.load`; `guarded` says that a condition around it may rule out that it hangs over."""
    array, shape = values.get("array"), shape_of(values.get("shape"))
    if not isinstance(array, Array):
        return Tile(shape=shape, axes=(None,) * len(shape or ()))
    order = values.get("order")
    plain = order is None or (isinstance(order, Scalar) and order.literal == "C") or _ascending(order)
    index = shape_of(values.get("index"))
    mode = _mode(values.get("padding_mode"))
    axes: tuple[Axis, ...] = (None,) * len(shape or ())
    bounded = "check_bounds" not in values
    if shape is not None and index is not None and len(shape) == len(index) and mode and bounded and not guarded:
        pairs = zip(index, shape, strict=True)
        axes = tuple(_outside(place, size, node, array.name, mode, launches) for place, size in pairs)
    return Tile(shape=shape, dtype=array.dtype, axes=axes, array=array if plain else None)


def _ascending(order: Value) -> bool:
    shape = shape_of(order)
    return shape is not None and [each.number if each else None for each in shape] == list(range(len(shape)))


def _mode(value: Value | None) -> tuple[Outside, float] | None:
    if value is None:
        return Outside.ANYTHING, 0.0
    name = value.name.rpartition(".")[2] if isinstance(value, Named) else None
    if name == "UNDETERMINED":
        return Outside.ANYTHING, 0.0
    return (Outside.NUMBER, _MODES[name]) if name in _MODES else None


def _outside(
    place: Polynomial | None,
    size: Polynomial | None,
    node: ast.Call,
    array: str,
    mode: tuple[Outside, float],
    launches: Launches,
) -> Axis:
    if place is None or size is None:
        return None
    found = evidence(place, size, launches)
    if found is None:
        return None
    why, bound = found
    return Padding(kind=mode[0], number=mode[1], load=node, array=array, why=why, size=size, bound=bound)


def gathered(values: Values, node: ast.Call, launches: Launches) -> Value:
    """`ct.gather`: bounds are checked and what lies outside is `padding_value` unless the call says otherwise."""
    array = values.get("array")
    entries = entries_of(values.get("indices", UNKNOWN))
    shape = broadcast(entries)
    dtype = array.dtype if isinstance(array, Array) else None
    if shape is not None and not shape and all(isinstance(each, Scalar) for each in entries):
        return Scalar(dtype=dtype)
    axes: tuple[Axis, ...] = (None,) * len(shape or ())
    checked = values.get("check_bounds")
    fill = 0.0 if "padding_value" not in values else number_of(values["padding_value"])
    plain = checked is None and "mask" not in values
    if shape is not None and plain and fill is not None and isinstance(array, Array):
        axes = tuple(
            _gathered_axis(entries, place, node, array.name, fill, launches) for place in range(-len(shape), 0)
        )
    return Tile(shape=shape, dtype=dtype, axes=axes, array=array if isinstance(array, Array) else None)


def entries_of(indices: Value) -> tuple[Value, ...]:
    """The index along each axis; one that is no tuple is the only one."""
    return indices.items if isinstance(indices, Sequence) else (indices,)


def _gathered_axis(
    entries: tuple[Value, ...], place: int, node: ast.Call, array: str, fill: float, launches: Launches
) -> Axis:
    for entry in entries:
        if not isinstance(entry, Tile) or entry.shape is None or -place > len(entry.shape):
            continue
        size = entry.shape[place]
        if size is None or size.number == 1 or sum(_varying(entry.shape)) != 1:
            continue
        start = first_tile(entry)
        if start is not None:
            return _outside(*start, node, array, (Outside.NUMBER, fill), launches)
        row = first_of_row(entry) if len(entries) == 1 else None
        return None if row is None else _outside(integer(0), row, node, array, (Outside.NEIGHBOUR, 0.0), launches)
    return None


def first_tile(entry: Value) -> tuple[Polynomial, Polynomial] | None:
    """The number of the tile that a row of places lies in, and the size of the tile; None for other places."""
    if not isinstance(entry, Tile) or entry.element is None:
        return None
    lanes = [atom for atom in entry.element.atoms() if atom.kind == "lane"]
    if len(lanes) != 1 or not lanes[0].parts or lanes[0].parts[0].number == 0:
        return None
    size = lanes[0].parts[0]
    rest = entry.element - unknown("lane", *lanes[0].key)
    start = integer(0) if rest.number == 0 else rest.divided(size)
    return None if start is None else (start, size)


def first_of_row(entry: Value) -> Polynomial | None:
    """The size of a row of places that starts at a multiple of something else, as `row * N + ct.arange(TILE)`."""
    if not isinstance(entry, Tile) or entry.element is None:
        return None
    lanes = [atom for atom in entry.element.atoms() if atom.kind == "lane"]
    if len(lanes) != 1 or not lanes[0].parts:
        return None
    rest = entry.element - unknown("lane", *lanes[0].key)
    rows = [atoms for atoms, _ in rest.terms if len(atoms) > 1 and any(atom.kind == "bid" for atom in atoms)]
    return lanes[0].parts[0] if rows and len(rest.terms) == len(rows) else None


def _varying(shape: Shape) -> list[bool]:
    return [size is None or size.number != 1 for size in shape]


def tiles_along(array: Value, axis: Value | None, shape: Value | None) -> Value:
    """`ct.num_tiles`."""
    sizes = shape_of(shape)
    place = axis.literal if isinstance(axis, Scalar) else None
    if not isinstance(array, Array) or not isinstance(place, int) or sizes is None or not 0 <= place < len(sizes):
        return integer_scalar(unknown("other", "num_tiles", repr(array)))
    size = sizes[place]
    if size is None:
        return integer_scalar(unknown("other", "num_tiles", array.name, place))
    return integer_scalar(rounded_up(unknown("dimension", array.name, place), size))
