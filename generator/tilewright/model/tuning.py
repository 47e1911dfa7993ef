"""What a search over the table of an operator found, entry by entry."""

from dataclasses import dataclass
from dataclasses import field
from typing import Any
from typing import Literal

Basis = Literal["measured", "compiled", "unused"]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One candidate for an entry: its times by size, or why it was given up."""

    values: dict[str, Any]
    verdict: Literal["ok", "pruned", "unused", "slow", "failed"]
    error: str = ""
    milliseconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TunedEntry:
    """One entry before and after."""

    label: str
    arch: str
    dtype: str
    basis: Basis  # compiled: by what the compiler reports; unused: no size of the benchmark leads to it
    before: dict[str, Any]
    after: dict[str, Any]
    space: int  # candidates that there are
    trials: tuple[Trial, ...] = ()
    gain: float | None = None  # how much faster, as a geometric mean over the sizes that it is used for
    seconds: float = 0.0
    note: str = ""  # why a better candidate was not taken

    @property
    def changed(self) -> bool:
        """Whether there is something to write."""
        return self.before != self.after
