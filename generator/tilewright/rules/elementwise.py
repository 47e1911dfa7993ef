"""Operations that treat each element of a tile, or a number, alone."""

from dataclasses import replace

from tilewright.rules.dtypes import is_integer
from tilewright.rules.dtypes import promoted
from tilewright.rules.padding import axis_of
from tilewright.rules.padding import combined
from tilewright.rules.padding import number_of
from tilewright.rules.shapes import broadcast
from tilewright.rules.symbols import Polynomial
from tilewright.rules.symbols import floor_divided
from tilewright.rules.symbols import integer
from tilewright.rules.symbols import remainder
from tilewright.rules.symbols import rounded_up
from tilewright.rules.symbols import unknown
from tilewright.rules.values import UNKNOWN
from tilewright.rules.values import Axis
from tilewright.rules.values import Outside
from tilewright.rules.values import Padding
from tilewright.rules.values import Plain
from tilewright.rules.values import Scalar
from tilewright.rules.values import Tile
from tilewright.rules.values import Value

COMPARISONS = frozenset({"equal", "not_equal", "greater", "greater_equal", "less", "less_equal"})


TRANSCENDENTAL = frozenset(
    ["exp", "exp2", "log", "log2", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "rsqrt", "pow", "atan2"]
)


_ROUNDING = frozenset({"floor", "ceil", "abs", "negative", "bitwise_not", "isnan"})


UNARY = (TRANSCENDENTAL - {"pow", "atan2"}) | _ROUNDING


BINARY = COMPARISONS | frozenset(
    [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "cdiv",
        "pow",
        "atan2",
        "minimum",
        "maximum",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_lshift",
        "bitwise_rshift",
    ]
)


_POSITIVE = frozenset({"abs", "exp", "exp2", "sqrt", "rsqrt", "cosh"})


def binary(name: str, x: Value, y: Value) -> Value:
    """The result of an operation on two values, element by element."""
    if not isinstance(x, Scalar | Tile) or not isinstance(y, Scalar | Tile):
        other = x if isinstance(x, Tile) else y if isinstance(y, Tile) else None
        return Tile() if other is not None else UNKNOWN
    dtype = "bool" if name in COMPARISONS else promoted(x.dtype, y.dtype)
    if name == "truediv" and (dtype is None or is_integer(dtype)):
        both = is_integer(x.dtype) and is_integer(y.dtype)
        dtype = "float" if x.dtype == y.dtype == "int" else "float32" if both else None
    if isinstance(x, Scalar) and isinstance(y, Scalar):
        return _numbers(name, x, y, dtype)
    return _tiles(name, x, y, dtype)


def _numbers(name: str, x: Scalar, y: Scalar, dtype: str | None) -> Scalar:
    constant = x.constant and y.constant
    number = None
    if x.number is not None and y.number is not None:
        number = _integers(name, x.number, y.number)
    literal: float | int | bool | str | None = number.number if number is not None else None
    if literal is None and number is None and isinstance(x.literal, int | float) and isinstance(y.literal, int | float):
        axis = combined(name, (Plain(float(x.literal)), Plain(float(y.literal))))
        literal = axis.number if isinstance(axis, Plain) else None
        if name in COMPARISONS and literal is not None:
            literal = bool(literal)
    one = name == "truediv" and x.literal == 1
    return Scalar(number=number, literal=literal, constant=constant, dtype=dtype, reciprocal=y.number if one else None)


def _integers(name: str, a: Polynomial, b: Polynomial) -> Polynomial | None:
    match name:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "floordiv":
            return floor_divided(a, b)
        case "cdiv":
            return rounded_up(a, b)
        case "mod":
            return remainder(a, b)
        case "minimum" | "maximum":
            if a.number is not None and b.number is not None:
                return integer(min(a.number, b.number) if name == "minimum" else max(a.number, b.number))
            return unknown(name, *sorted((a, b), key=repr))
        case "pow" if b.number == 2:
            return a * a
    return None if name in COMPARISONS or name in ("truediv", "pow", "atan2") else unknown("other", name, a, b)


def _tiles(name: str, x: Scalar | Tile, y: Scalar | Tile, dtype: str | None) -> Tile:
    shape = broadcast((x, y))
    axes: tuple[Axis, ...] = ()
    if shape is not None:
        axes = tuple(combined(name, (axis_of(x, place), axis_of(y, place))) for place in range(-len(shape), 0))
    a, b = (each.number if isinstance(each, Scalar) else each.element for each in (x, y))
    element = _integers(name, a, b) if a is not None and b is not None and name not in COMPARISONS else None
    first, second = number_of(x), number_of(y)
    number = None
    if first is not None and second is not None:
        whole = combined(name, (Plain(first), Plain(second)))
        number = whole.number if isinstance(whole, Plain) else None
    places = any(isinstance(each, Tile) and each.element is not None for each in (x, y))
    masks = any(isinstance(each, Tile) and each.bounds for each in (x, y))
    return Tile(
        shape=shape,
        dtype=dtype,
        axes=axes,
        element=element,
        number=number,
        bounds=masks or (name in COMPARISONS and places),
        positive=_is_positive(name, x, y),
        summed=_sum_scaled(name, x, y),
    )


def _is_positive(name: str, x: Value, y: Value) -> bool:
    signs = [_no_less_than_zero(each) for each in (x, y)]
    if name == "maximum":
        return any(signs)
    if name == "mul" and x == y:
        return True
    if name == "pow" and isinstance(y, Scalar) and y.literal == 2:
        return True
    return name in ("add", "mul", "truediv", "minimum") and all(signs)


def _no_less_than_zero(value: Value) -> bool:
    number = number_of(value)
    return number >= 0 if number is not None else isinstance(value, Tile) and value.positive


def _sum_scaled(name: str, x: Value, y: Value) -> tuple[Padding, ...]:
    """A sum that is converted or added to another one is still one; a quotient is none."""
    sums = [each.summed for each in (x, y) if isinstance(each, Tile)]
    return next((each for each in sums if each), ()) if name == "add" else ()


def unary(name: str, x: Value) -> Value:
    """The result of an operation on each element of one value."""
    if isinstance(x, Scalar):
        number = combined(name, (Plain(number_of(x)),))
        literal = number.number if isinstance(number, Plain) else None
        integral = x.number * integer(-1) if name == "negative" and x.number is not None else None
        if integral is not None:
            literal = integral.number
        return Scalar(number=integral, literal=literal, constant=x.constant, dtype=x.dtype)
    if not isinstance(x, Tile):
        return UNKNOWN
    dtype = "bool" if name == "isnan" else x.dtype
    if name in TRANSCENDENTAL and is_integer(dtype):
        dtype = "float32"
    whole = combined(name, (Plain(x.number),)) if x.number is not None else None
    return Tile(
        shape=x.shape,
        dtype=dtype,
        axes=tuple(combined(name, (each,)) for each in x.axes),
        number=whole.number if isinstance(whole, Plain) else None,
        bounds=x.bounds and name == "bitwise_not",
        positive=name in _POSITIVE,
    )


def where(cond: Value, x: Value, y: Value) -> Value:
    """Elements of `x` where `cond` holds, else of `y`."""
    values = (cond, x, y)
    if not any(isinstance(each, Tile) for each in values):
        return Scalar(dtype=promoted(getattr(x, "dtype", None), getattr(y, "dtype", None)))
    shape = broadcast(values)
    dtype = promoted(getattr(x, "dtype", None), getattr(y, "dtype", None))
    axes = () if shape is None else tuple(_chosen(cond, x, y, place) for place in range(-len(shape), 0))
    positive = _no_less_than_zero(x) and _no_less_than_zero(y)
    return Tile(shape=shape, dtype=dtype, axes=axes, positive=positive)


def _chosen(cond: Value, x: Value, y: Value, place: int) -> Axis:
    outside = [axis_of(each, place) for each in (x, y)]
    varies = not isinstance(cond, Tile) or cond.shape is None or _varies(cond, place)
    if isinstance(cond, Tile) and cond.bounds and varies:
        # Which of the two it takes outside is not known: the one that is a number, as in where(inside, x, 0.0)
        numbers = [number_of(x), number_of(y)]
        padding = next((each for each in outside if isinstance(each, Padding)), None)
        constants = [each for each in numbers if each is not None]
        if padding is None or len(constants) != 1:
            return None
        return replace(padding, kind=Outside.NUMBER, number=constants[0])
    truth = axis_of(cond, place)
    if isinstance(truth, Padding) and truth.kind is Outside.NUMBER:
        taken = outside[0] if truth.number else outside[1]
        return _as_padding(taken, truth)
    if outside[0] == outside[1]:
        return outside[0]
    return None


def _as_padding(taken: Axis, like: Padding) -> Axis:
    if isinstance(taken, Plain) and taken.number is not None:
        return replace(like, kind=Outside.NUMBER, number=taken.number)
    return taken if isinstance(taken, Padding) else None


def _varies(tile: Tile, place: int) -> bool:
    shape = tile.shape or ()
    if -place > len(shape):
        return False
    size = shape[place]
    return size is None or size.number != 1
