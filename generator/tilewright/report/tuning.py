"""Words for what `tilewright tune` found."""

from collections.abc import Mapping
from typing import Any

from tilewright.model.tuning import Basis

BASES: dict[Basis, str] = {
    "measured": "measuring",
    "compiled": "the compiler's report",
    "unused": "nothing: no size uses it",
}


def describe_values(values: Mapping[str, Any]) -> str:
    """Fields and values, a tile as 128x256x64."""
    return " ".join(f"{name}={_text(value)}" for name, value in values.items())


def _text(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
