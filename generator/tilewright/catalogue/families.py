"""The families of operators that the template can make."""

from dataclasses import dataclass
from pathlib import Path

from tilewright.catalogue.data_file import read_data
from tilewright.catalogue.nearest import unknown_name


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One member of a family."""

    name: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class Family:
    """One family, as its `family.yml` describes it."""

    name: str
    title: str
    summary: str
    computes: str
    variants: tuple[Variant, ...]  # the first is the default
    questions: tuple[str, ...]  # answers that only some families have
    metric: str  # GBps or TFLOPS
    dtypes: tuple[str, ...]
    default_dtypes: tuple[str, ...]
    backward: bool


def read_families(partials: Path) -> tuple[Family, ...]:
    """All families of a template, by name."""
    return tuple(_read(path) for path in sorted(partials.glob("*/family.yml")))


def find_family(name: str, families: tuple[Family, ...]) -> Family:
    """The family of that name, or an error that says which there are."""
    for family in families:
        if family.name == name:
            return family
    names = [family.name for family in families]
    raise unknown_name(f"{name!r} is not a family", name, names, hint="what each computes: tilewright list")


def _read(path: Path) -> Family:
    data = read_data(path)
    return Family(
        name=data["name"],
        title=data["title"],
        summary=data["summary"],
        computes=data["computes"],
        variants=tuple(Variant(name=name, summary=text) for name, text in data.get("variants", {}).items()),
        questions=tuple(data.get("questions", ())),
        metric=data["metric"],
        dtypes=tuple(data["dtypes"]),
        default_dtypes=tuple(data["default_dtypes"]),
        backward=data["backward"],
    )
