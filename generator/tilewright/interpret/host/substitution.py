"""Put functions and classes in the place of others, everywhere that they are known by name, and back again."""

import sys
from collections.abc import Iterable
from typing import Any

Replacement = tuple[Any, str, Any]  # owner (a module or a class), attribute, what takes its place
_INHERITED = object()


class Substitution:
    """A set of replacements; as a context manager it makes them and undoes them.

    What a module got with `from ... import ...` is replaced there as well, and on the way out also in modules that were
    imported in between. References elsewhere, as in a closure or a container, stay. Each value that takes a place must
    be new, for it is replaced everywhere on the way out.
    """

    def __init__(self, replacements: Iterable[Replacement]) -> None:
        self._replacements = list(replacements)
        self._originals: list[Replacement] = []

    def __enter__(self) -> None:
        self._originals = [(owner, name, vars(owner).get(name, _INHERITED)) for owner, name, _ in self._replacements]
        for owner, name, value in self._replacements:
            setattr(owner, name, value)
        _exchange(zip(self._originals, self._replacements, strict=True))

    def __exit__(self, *_exception: object) -> None:
        for owner, name, value in self._originals:
            if value is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        _exchange(zip(self._replacements, self._originals, strict=True))


def _exchange(pairs: Iterable[tuple[Replacement, Replacement]]) -> None:
    """Replace global names of all modules that refer to the first of a pair by the second."""
    by_identity = {id(old): (old, new) for (_, _, old), (_, _, new) in pairs if callable(old)}
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if not isinstance(names, dict):  # anything may stand there
            continue
        for name, value in list(names.items()):
            if id(value) in by_identity:
                names[name] = by_identity[id(value)][1]
