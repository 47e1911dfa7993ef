"""What an expression of a kernel can be, as far as its source says: an array, a tile, an index, a constant."""

import ast
from dataclasses import dataclass
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from tilewright.rules.symbols import Polynomial
from tilewright.rules.symbols import integer
from tilewright.rules.symbols import unknown

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Value:
    """Anything; on its own: nothing is known."""


UNKNOWN = Value()


@dataclass(frozen=True)
class Scalar(Value):
    """One number, or a 0-d tile; `literal` is its value where the source says it."""

    number: Polynomial | None = None  # of an integer
    literal: bool | int | float | str | None = None
    constant: bool = False  # known when the kernel is compiled
    dtype: str | None = None  # as of a tile; "int" and "float" of Python numbers take the dtype of the other operand
    parameter: str | None = None
    reciprocal: Polynomial | None = None  # it is 1 divided by this


@dataclass(frozen=True)
class Array(Value):
    """A parameter that `ct.load` and `ct.gather` read."""

    name: str

    @property
    def dtype(self) -> str:
        """The dtype of its elements: not known, but the same wherever this text is."""
        return f"{self.whole}.dtype"

    @property
    def whole(self) -> str:
        """The parameter, of which this may be a part."""
        return self.name.partition(".")[0]


class Outside(Enum):
    """What lies in the part of a tile that is beyond the end of the array."""

    ANYTHING = "undetermined"
    NEIGHBOUR = "elements of the next row"  # of a flat index that runs past the end of its row
    NUMBER = "number"
    COMPUTED = "computed"  # finite, from padding and from elements of the array


@dataclass(frozen=True)
class Padding:
    """The part of a tile beyond the end of the array along one axis, where there is known to be such a part."""

    kind: Outside
    load: ast.Call
    array: str
    why: str  # how one can tell that there is such a part
    size: Polynomial  # of the tile along the axis
    number: float = 0.0
    bound: Polynomial | None = None  # the length of the array, where the source names it


@dataclass(frozen=True)
class Plain:
    """Elements along an axis where nothing lies outside; `number` is what they all are, if known."""

    number: float | None = None


Axis = Padding | Plain | None  # None: not known


@dataclass(frozen=True)
class Tile(Value):
    """A tile; every fact is None (or False) where it is not known."""

    shape: tuple[Polynomial | None, ...] | None = None
    dtype: str | None = None
    axes: tuple[Axis, ...] = ()  # along each axis of `shape`, what lies outside
    element: Polynomial | None = None  # of a tile of integers
    number: float | None = None  # where all elements are the same
    bounds: bool = False  # truth values that compare places, as `ct.arange(N) < n`
    positive: bool = False  # no element is below 0, except padding
    array: Array | None = None  # that it was loaded from, unchanged or converted
    cast: str | None = None  # the array whose dtype it was converted to
    summed: tuple[Padding, ...] = ()  # it is a sum over these
    maximum_of: "Tile | None" = None  # it is the largest element of that
    start: ast.expr | None = None  # `ct.full` or `ct.zeros` that made it
    folded: bool = False  # a reduction or a product of matrices has a part in it

    def __post_init__(self) -> None:
        """One entry of `axes` for each of `shape`."""
        rank = len(self.shape or ())
        if len(self.axes) != rank:
            object.__setattr__(self, "axes", (None,) * rank)

    @property
    def rank(self) -> int | None:
        """Number of axes."""
        return None if self.shape is None else len(self.shape)


@dataclass(frozen=True)
class Sequence(Value):
    """A tuple or list."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Repeated(Value):
    """A tuple of unknown length, as a loop adds it up: all of its items, but perhaps the last, are alike."""

    item: Value
    last: Value


@dataclass(frozen=True)
class Named(Value):
    """What an import or the module `cuda.tile` names: a function, a dtype, a padding mode."""

    name: str


@dataclass(frozen=True)
class DType(Value):
    """A dtype: "float32", or "X.dtype" for that of an array."""

    name: str


@dataclass(frozen=True, eq=False)
class Function(Value):
    """A function of the module, or inside of a kernel, with the variables around it."""

    node: ast.FunctionDef | ast.Lambda
    variables: "Mapping[str, Value]"


@dataclass(frozen=True)
class View(Value):
    """What `array.tiled_view(shape)` gives."""

    array: Array
    shape: tuple[Polynomial | None, ...] | None
    padding: Value | None
    steps: tuple[Polynomial | None, ...] | None = None  # from tile to tile, where they are not those of `shape`


@dataclass(frozen=True, eq=False)
class Method(Value):
    """A method of a value, not yet called."""

    owner: Value
    name: str


def has_many_elements(value: Value | None) -> bool:
    """Whether it is a tile that is known to have more than one element."""
    shape = value.shape if isinstance(value, Tile) else None
    return shape is not None and any(size is None or size.number != 1 for size in shape)


def scalar(value: bool | int | float | str) -> Scalar:
    """A number that is written in the source."""
    kinds: dict[type, str] = {bool: "bool", int: "int", float: "float"}
    number = integer(value) if type(value) is int else None
    return Scalar(number=number, literal=value, constant=True, dtype=kinds.get(type(value)))


def integer_scalar(number: Polynomial, dtype: str = "int32", *, constant: bool = False) -> Scalar:
    """An integer that the source does not say in full."""
    return Scalar(number=number, literal=number.number, constant=constant, dtype=dtype)


def merged(first: Value, second: Value, key: tuple[object, ...]) -> Value:
    """What a variable may be after two paths; `key` names the variable and the place where they meet."""
    if first == second:
        return first
    if isinstance(first, Scalar) and isinstance(second, Scalar):
        integers = first.number is not None and second.number is not None
        number = first.number if first.number == second.number else unknown("merge", *key) if integers else None
        dtype = first.dtype if first.dtype == second.dtype else None
        return Scalar(number=number, constant=first.constant and second.constant, dtype=dtype)
    if isinstance(first, Tile) and isinstance(second, Tile):
        return _merged_tiles(first, second)
    if isinstance(first, Sequence) and isinstance(second, Sequence) and len(first.items) == len(second.items):
        pairs = enumerate(zip(first.items, second.items, strict=True))
        return Sequence(tuple(merged(a, b, (*key, place)) for place, (a, b) in pairs))
    if isinstance(first, Sequence | Repeated) and isinstance(second, Sequence | Repeated):
        return _merged_sequences(first, second, key)
    if isinstance(first, DType) and isinstance(second, DType) and {first.name, second.name} == {"float32", "float64"}:
        return DType("float32")  # no half precision: that is all that is asked of it
    return UNKNOWN


def _merged_sequences(a: Sequence | Repeated, b: Sequence | Repeated, key: tuple[object, ...]) -> Value:
    parts = [each for each in (repeated(a), repeated(b)) if each is not None]
    if len(parts) < 2:
        return parts[0] if parts else UNKNOWN
    item, last = merged(parts[0].item, parts[1].item, key), merged(parts[0].last, parts[1].last, key)
    return Repeated(item, last)


def repeated(value: Sequence | Repeated) -> Repeated | None:
    """A tuple seen as one of unknown length; None for one that is empty."""
    if isinstance(value, Repeated):
        return value
    if not value.items:
        return None
    item = value.items[0]
    for place, each in enumerate(value.items[1:-1]):
        item = merged(item, each, ("item", place))
    return Repeated(item, value.items[-1])


def any_item(value: Repeated) -> Value:
    """An item of which the place is not known."""
    return merged(value.item, value.last, ("item",))


def _merged_tiles(a: Tile, b: Tile) -> Tile:
    shape = None
    axes: tuple[Axis, ...] = ()
    if a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
        shape = tuple(x if x == y else None for x, y in zip(a.shape, b.shape, strict=True))
        axes = tuple(x if x == y else None for x, y in zip(a.axes, b.axes, strict=False))
    return Tile(
        shape=shape,
        dtype=a.dtype if a.dtype == b.dtype else None,
        axes=axes,
        element=a.element if a.element == b.element else None,
        number=a.number if a.number == b.number else None,
        bounds=a.bounds or b.bounds,
        positive=a.positive and b.positive,
        cast=a.cast if a.cast == b.cast else None,
        folded=a.folded or b.folded,
    )


def carried(before: Value, after: Value, key: tuple[object, ...]) -> Value:
    """What a variable is at the start of a later turn of a loop: padding as the last turn left it."""
    joined = merged(before, after, key)
    if isinstance(joined, Tile) and isinstance(before, Tile) and isinstance(after, Tile) and joined.shape is not None:
        return replace(joined, axes=after.axes, summed=after.summed)
    return joined
