"""Files in three versions, as hypothesis or a random generator makes them."""

import random
from collections.abc import Sequence

from hypothesis import strategies

Lines = list[str]
Triple = tuple[bytes, bytes | None, bytes | None]  # as it was made, as its owner has it, as it is made now

_BASES = (
    [f"value_{number} = {number}" for number in range(12)],
    ["import torch", "", "", "def first(x):", "    return x", "", "", "def second(x):", "    return x", ""],
    [],
    ["only"],
)


def edit(lines: Sequence[str], generator: random.Random, word: str) -> Lines:
    """A few lines changed, added or removed."""
    edited = list(lines)
    for number in range(generator.randint(1, 3)):
        place = generator.randint(0, len(edited))
        new = f"{word}_{number} = {generator.randint(0, 9)}"
        match generator.choice(("add", "change", "remove")):
            case "add":
                edited.insert(place, new)
            case "change":
                edited[place : place + 1] = [new]
            case "remove":
                del edited[place : place + generator.randint(1, 2)]
    return edited


def triple(generator: random.Random) -> Triple:
    """One file that its owner and its template may have edited or removed."""
    base = list(generator.choice(_BASES))
    owner = generator.choice((base, edit(base, generator, "mine"), edit(base, generator, "mine"), None))
    template = generator.choice((base, edit(base, generator, "new"), edit(base, generator, "new"), None))
    if generator.random() < 0.1:
        owner = template
    return _text(base), _maybe(owner, generator), _maybe(template, generator)


def triples() -> strategies.SearchStrategy[list[Triple]]:
    """Lists of files."""
    seeds = strategies.lists(strategies.integers(0, 2**32), min_size=4, max_size=20)
    return seeds.map(lambda numbers: [triple(random.Random(number)) for number in numbers])


def _maybe(lines: Lines | None, generator: random.Random) -> bytes | None:
    if lines is None:
        return None
    return _text(lines).removesuffix(b"\n") if generator.random() < 0.05 else _text(lines)


def _text(lines: Lines) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
