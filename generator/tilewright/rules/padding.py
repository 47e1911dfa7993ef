"""What operations make of the elements beyond the end of an array."""

import math
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import replace

from tilewright.rules.values import Axis
from tilewright.rules.values import Outside
from tilewright.rules.values import Padding
from tilewright.rules.values import Plain
from tilewright.rules.values import Scalar
from tilewright.rules.values import Tile
from tilewright.rules.values import Value

_FUNCTIONS: dict[str, Callable[..., float]] = {
    "abs": abs,
    "add": lambda x, y: x + y,
    "bitwise_and": lambda x, y: float(int(x) & int(y)),
    "bitwise_or": lambda x, y: float(int(x) | int(y)),
    "ceil": math.ceil,
    "cos": math.cos,
    "cosh": math.cosh,
    "equal": lambda x, y: float(x == y),
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "floor": math.floor,
    "greater": lambda x, y: float(x > y),
    "greater_equal": lambda x, y: float(x >= y),
    "less": lambda x, y: float(x < y),
    "less_equal": lambda x, y: float(x <= y),
    "log": lambda x: math.log(x) if x else -math.inf,
    "log2": lambda x: math.log2(x) if x else -math.inf,
    "maximum": max,
    "minimum": min,
    "mul": lambda x, y: x * y,
    "negative": lambda x: -x,
    "not_equal": lambda x, y: float(x != y),
    "pow": lambda x, y: x**y,
    "sin": math.sin,
    "sinh": math.sinh,
    "sqrt": math.sqrt,
    "sub": lambda x, y: x - y,
    "tan": math.tan,
    "tanh": math.tanh,
    "truediv": lambda x, y: x / y,
}


def axis_of(value: Value, place: int) -> Axis:
    """What lies outside along an axis, counted from the last (-1), once the value is broadcast to that many axes."""
    if isinstance(value, Scalar):
        return Plain(number_of(value))
    if not isinstance(value, Tile):
        return None
    if value.number is not None:
        return Plain(value.number)
    if value.shape is None:
        return None
    size = value.shape[place] if -place <= len(value.shape) else None
    if -place > len(value.shape) or (size is not None and size.number == 1):
        return Plain()
    return value.axes[place] if -place <= len(value.axes) else None


def number_of(value: Value) -> float | None:
    """The value of a number, or of a tile whose elements are all the same."""
    if isinstance(value, Scalar) and isinstance(value.literal, int | float):
        return float(value.literal)
    return value.number if isinstance(value, Tile) else None


def combined(operation: str, operands: Sequence[Axis]) -> Axis:
    """What lies outside of the result of an operation that treats each element alone."""
    if any(each is None for each in operands):
        return None
    padded = [each for each in operands if isinstance(each, Padding)]
    numbers: list[float | None] = [each.number for each in operands if isinstance(each, Plain | Padding)]
    if not padded:
        return Plain(_computed(operation, numbers))
    undetermined = next((each for each in padded if each.kind in (Outside.ANYTHING, Outside.NEIGHBOUR)), None)
    if undetermined is not None:
        return undetermined
    if any(each.kind is Outside.COMPUTED for each in padded):
        numbers = [
            None if isinstance(a, Padding) and a.kind is Outside.COMPUTED else n
            for a, n in zip(operands, numbers, strict=True)
        ]
    known = _computed(operation, numbers)
    first = padded[0]
    if known is None:
        return replace(first, kind=Outside.COMPUTED, number=0.0)
    return replace(first, kind=Outside.NUMBER, number=known)


def _computed(operation: str, numbers: Sequence[float | None]) -> float | None:
    """The result for operands of which None are finite and not known; a factor is taken to be above zero."""
    if all(number is not None for number in numbers):
        try:
            return float(_FUNCTIONS[operation](*numbers))
        except (KeyError, ArithmeticError, ValueError, TypeError):
            return math.nan if operation in _FUNCTIONS else None
    match operation, numbers:
        case "mul", (0.0, None) | (None, 0.0):
            return 0.0
        case "mul" | "add", (float(number), None) | (None, float(number)) if _is_huge(number):
            return number
        case "truediv" | "sub", (float(number), None) if _is_huge(number):
            return number
        case "sub", (None, float(number)) if _is_huge(number):
            return -number
        case "truediv", (0.0, None):
            return 0.0
        case "minimum", (float(number), None) | (None, float(number)) if number == -math.inf:
            return number
        case "maximum", (float(number), None) | (None, float(number)) if number == math.inf:
            return number
    return None


def _is_huge(number: float) -> bool:
    """Infinite, or one of the large numbers that are used instead, as -1e6 for what a mask leaves out."""
    return abs(number) >= 1e4
