"""The functions that a formula may call."""

from dataclasses import dataclass
from pathlib import Path

from tilewright.catalogue.data_file import read_data

CONDITIONS = {"isnan"}  # what they return is chosen with, not computed with


@dataclass(frozen=True, kw_only=True)
class Function:
    """One function of the template's table."""

    name: str
    arguments: int
    takes: str  # one letter for each argument: t a tensor, s a number or scalar, v either, c a condition
    cutile: str
    torch: str
    gradient: tuple[str, ...] = ()  # per argument, in terms of a, b, c and `grad`; empty: not known


def read_functions(partials: Path) -> dict[str, Function]:
    """The table `functions.yml` of the template."""
    table = read_data(partials / "functions.yml")
    return {
        name: Function(
            name=name,
            arguments=entry["args"],
            takes=entry.get("takes", "t" * entry["args"]),
            cutile=entry["cutile"],
            torch=entry["torch"],
            gradient=tuple(entry.get("gradient", ())),
        )
        for name, entry in table.items()
    }
