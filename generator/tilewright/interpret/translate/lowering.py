"""The table from operations of the compiler's IR to the functions that run them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """How one operation runs: results = function(*operands).

    The function is specialised on all that is static. It returns the value of one result, a tuple for several, None for
    none; tokens, which only order accesses, are no results and never operands. Operands are variables of the IR, None,
    or tuples of these, which are passed as tuples.
    """

    function: Callable[..., Any]
    operands: tuple[Any, ...]
    needs_run: bool = False  # the `Run` is passed first
    unused: Callable[..., None] | None = None  # what runs instead where nothing uses the one result


Handler = Callable[[Any], Step]


@dataclass(frozen=True, slots=True)
class Lowering:
    """How operations of one opcode become steps, and the static attributes that are understood."""

    handler: Handler
    attributes: frozenset[str]


LOWERINGS: dict[str, Lowering] = {}


def lowers(opcode: str, *attributes: str) -> Callable[[Handler], Handler]:
    """Register the decorated function as what turns an operation of this opcode into a `Step`.

    `attributes` are the names of the operation's static fields that the function honours, in any supported cuda-tile;
    an operation that has another one is refused, so that none is ignored in silence.
    """

    def register(handler: Handler) -> Handler:
        if opcode in LOWERINGS:
            raise ValueError(f"{opcode} is lowered twice")
        LOWERINGS[opcode] = Lowering(handler, frozenset(attributes))
        return handler

    return register
