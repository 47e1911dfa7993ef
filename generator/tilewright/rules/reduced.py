"""Padding along the axes that an operation reduces or contracts."""

import math
from collections.abc import Iterator

from tilewright.rules.flow import Operation
from tilewright.rules.shapes import reduced
from tilewright.rules.values import Padding
from tilewright.rules.values import Tile

NEUTRAL = {"sum": 0.0, "cumsum": 0.0, "prod": 1.0, "cumprod": 1.0, "max": -math.inf, "min": math.inf}
NEUTRAL |= {"argmax": -math.inf, "argmin": math.inf}


def reached(operation: Operation) -> Iterator[tuple[Padding, Tile]]:
    """Padding along the axes that an operation reduces, scans or contracts, with the operand that has it."""
    x = operation.value("x")
    if operation.name in ("mma", "matmul"):
        y = operation.value("y")
        for operand, place in ((x, -1), (y, -2)):
            if isinstance(operand, Tile) and (operand.rank or 0) >= 2 and isinstance(operand.axes[place], Padding):
                yield operand.axes[place], operand  # type: ignore[misc]
    elif operation.name in NEUTRAL and isinstance(x, Tile):
        for place in _places(operation, x):
            outside = x.axes[place]
            if isinstance(outside, Padding):
                yield outside, x


def _places(operation: Operation, x: Tile) -> tuple[int, ...]:
    if operation.name in ("cumsum", "cumprod"):
        return ()  # what lies outside comes after everything that is kept, unless reversed
    found = reduced(x, operation.values.get("axis"), keepdims=False)
    return found[1] if found else ()
