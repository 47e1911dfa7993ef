"""A file to be created, changed or removed, and a set of them that lands together or not at all."""

import difflib
from dataclasses import dataclass
from pathlib import Path
from pathlib import PurePosixPath
from typing import Literal

Kind = Literal["create", "change", "remove"]


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """One file before and after; `None` means that it does not exist."""

    path: PurePosixPath  # relative to the root of the change set
    before: bytes | None
    after: bytes | None

    @property
    def kind(self) -> Kind:
        """What happens to the file."""
        if self.before is None:
            return "create"
        return "remove" if self.after is None else "change"

    def diff(self) -> str:
        """Unified diff of the change, as `git diff` would show it."""
        before = (self.before or b"").decode(errors="replace").splitlines(keepends=True)
        after = (self.after or b"").decode(errors="replace").splitlines(keepends=True)
        old = "/dev/null" if self.before is None else f"a/{self.path}"
        new = "/dev/null" if self.after is None else f"b/{self.path}"
        return "".join(difflib.unified_diff(before, after, old, new))


@dataclass(frozen=True, kw_only=True)
class ChangeSet:
    """Changes of one command below one root folder."""

    root: Path
    changes: tuple[FileChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes)

    def merged(self, other: "ChangeSet") -> "ChangeSet":
        """Both sets together; they must not touch the same file."""
        assert self.root == other.root
        assert not {change.path for change in self.changes} & {change.path for change in other.changes}
        return ChangeSet(root=self.root, changes=self.changes + other.changes)

    def diff(self) -> str:
        """Unified diff of all changes."""
        return "".join(change.diff() for change in self.changes)
