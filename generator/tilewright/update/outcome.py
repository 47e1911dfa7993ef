"""What an update did, or would do: operators, files and conflicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from pathlib import PurePosixPath
from typing import Any
from typing import Literal

from tilewright.model.change import ChangeSet
from tilewright.update.hunks import Hunk

Strategy = Literal["inline", "rej", "ours", "theirs"]


@dataclass(frozen=True, kw_only=True)
class OperatorUpdate:
    """One operator and the versions of the template that it goes from and to."""

    name: str
    old: str
    new: str
    answers: Mapping[str, Any] = field(default_factory=dict)  # that the update changes
    detached: tuple[str, ...] = ()  # steps that its owner has taken over


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """One file in which owner and template changed the same."""

    path: PurePosixPath
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that one update changes."""

    target: str
    title: str  # of a commit
    operators: tuple[OperatorUpdate, ...]  # that are behind
    current: tuple[str, ...]  # names of those that are not
    changes: ChangeSet
    conflicts: tuple[Conflict, ...] = ()
    rejects: tuple[PurePosixPath, ...] = ()  # files that hold the owner's side of conflicts
    unmerged: tuple[tuple[PurePosixPath, tuple[bytes | None, bytes | None, bytes | None]], ...] = ()
    gone: tuple[PurePosixPath, ...] = ()  # files that the owner has removed
    notes: tuple[str, ...] = ()  # what a person must know besides

    @property
    def changes_anything(self) -> bool:
        """Whether there is something to write or to settle."""
        return bool(self.changes or self.unmerged)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left for a person to decide."""
        return not self.unmerged and not self.rejects
