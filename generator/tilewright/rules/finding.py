"""What a rule found: where, what, and how to mend it."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Severity(StrEnum):
    """How bad a finding is; an info never makes a command fail."""

    ERROR = "error"  # wrong numbers, a crash, or code that does not compile
    WARNING = "warning"  # wrong or slow for some inputs
    INFO = "info"  # worth knowing


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Text that replaces a range; lines and columns count from 1, in characters, the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class Fix:
    """A safe correction: all of its edits or none."""

    title: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong; lines and columns count from 1, in characters, the end is exclusive."""

    code: str
    message: str
    path: Path
    line: int
    column: int
    end_line: int
    end_column: int
    severity: Severity
    help: str = ""
    fix: Fix | None = None
