"""Parts of values: elements of tuples and shapes, slices, and what a parameter is where a number is asked for."""

from tilewright.rules.symbols import unknown
from tilewright.rules.values import UNKNOWN
from tilewright.rules.values import Array
from tilewright.rules.values import Method
from tilewright.rules.values import Repeated
from tilewright.rules.values import Scalar
from tilewright.rules.values import Sequence
from tilewright.rules.values import Value
from tilewright.rules.values import any_item
from tilewright.rules.values import integer_scalar
from tilewright.rules.values import merged
from tilewright.rules.values import repeated
from tilewright.rules.values import scalar


def numeric(value: Value) -> Value:
    """A parameter without annotation, where a number is asked for."""
    if isinstance(value, Array):
        return integer_scalar(unknown("parameter", value.name))
    if isinstance(value, Sequence):
        return Sequence(tuple(numeric(each) for each in value.items))
    return value


def as_long(shape: Value, index: Value) -> Value:
    """A shape that is one parameter, a tuple, as its elements: there are as many as the index has."""
    if isinstance(shape, Scalar) and shape.parameter is not None and isinstance(index, Sequence):
        return Sequence(tuple(element(shape, scalar(place)) for place in range(len(index.items))))
    return shape


def python_number(name: str, value: Value) -> Value:
    """What `float`, `int` and `bool` make of a value."""
    if not isinstance(value, Scalar):
        return UNKNOWN
    if isinstance(value.literal, str) and name == "float":
        return (
            scalar(float(value.literal)) if value.literal.strip("+-").lower() in ("inf", "nan", "infinity") else UNKNOWN
        )
    return Scalar(
        number=value.number if name == "int" else None, literal=value.literal, constant=value.constant, dtype=name
    )


def element(owner: Value, index: Value) -> Value:
    """One element of a tuple, or of the shape of an array."""
    place = index.literal if isinstance(index, Scalar) else None
    if isinstance(owner, Sequence):
        known = isinstance(place, int) and -len(owner.items) <= place < len(owner.items)
        if known and isinstance(place, int):
            return owner.items[place]
        return merged_all(owner.items)
    if isinstance(owner, Repeated):
        return owner.last if place == -1 else owner.item if place == 0 else any_item(owner)
    if isinstance(owner, Method) and isinstance(owner.owner, Array) and owner.name in ("shape", "strides"):
        kind = "dimension" if owner.name == "shape" else "stride"
        key = place if isinstance(place, int) else repr(index)
        return integer_scalar(unknown(kind, owner.owner.name, key))
    if isinstance(owner, Scalar) and owner.parameter is not None:
        key = place if isinstance(place, int) else repr(index)
        return Scalar(number=unknown("parameter", owner.parameter, key), constant=owner.constant)
    if isinstance(owner, Array):
        return UNKNOWN
    return UNKNOWN


def merged_all(items: tuple[Value, ...]) -> Value:
    """Any one of several values."""
    value = items[0] if items else UNKNOWN
    for each in items[1:]:
        value = merged(value, each, ("element", repr(each)))
    return value


def joined(x: Sequence | Repeated, y: Sequence | Repeated) -> Value:
    """One tuple after another."""
    if isinstance(x, Sequence) and isinstance(y, Sequence):
        return Sequence(x.items + y.items)
    first, second = repeated(x), repeated(y)
    if first is None or second is None:
        return first or second or UNKNOWN
    return Repeated(merged_all((first.item, first.last, second.item)), second.last)


def sliced(owner: Value, lower: Value | None, upper: Value | None) -> Value:
    """A part of a tuple."""
    if isinstance(owner, Repeated):
        whole = upper is None
        return owner if whole else Repeated(owner.item, owner.item)
    if not isinstance(owner, Sequence):
        return UNKNOWN
    ends: list[int | None] = []
    for each in (lower, upper):
        literal = each.literal if isinstance(each, Scalar) else None
        if each is not None and not isinstance(literal, int):
            return UNKNOWN
        ends.append(literal if isinstance(literal, int) else None)
    return Sequence(owner.items[ends[0] : ends[1]])
