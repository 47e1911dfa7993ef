"""The three versions of a file that an update merges, and what follows where only one side changed it."""

from dataclasses import dataclass
from dataclasses import replace
from pathlib import PurePosixPath


@dataclass(frozen=True, kw_only=True)
class Sides:
    """One file in three versions; None means that it does not exist."""

    path: PurePosixPath
    base: bytes | None  # as the recorded version of the template makes it
    owner: bytes | None  # as it is
    template: bytes | None  # as the new version of the template makes it

    @property
    def is_settled(self) -> bool:
        """Whether at most one side changed the file, or both alike, or the owner has removed it for good."""
        unchanged = self.owner == self.template or self.base in (self.owner, self.template)
        return unchanged or (self.owner is None and self.base is not None)

    @property
    def settled(self) -> bytes | None:
        """The outcome of a file that is settled."""
        return self.template if self.owner == self.base else self.owner

    def with_line_ends_of_template(self) -> "Sides":
        """The owner's version as if his editor or his git had not turned every line end into CRLF."""
        return replace(self, owner=to_lf(self.owner)) if self.is_crlf else self

    @property
    def is_crlf(self) -> bool:
        """Whether every line of the owner's version ends in CRLF, and those of the template do not."""
        ours = self.owner or b""
        others = (self.base or b"") + (self.template or b"")
        return b"\r\n" in ours and ours.count(b"\n") == ours.count(b"\r\n") and b"\r" not in others


def to_lf(content: bytes | None) -> bytes | None:
    """CRLF as LF."""
    return None if content is None else content.replace(b"\r\n", b"\n")


def to_crlf(content: bytes | None) -> bytes | None:
    """LF as CRLF."""
    return None if content is None else content.replace(b"\n", b"\r\n")
