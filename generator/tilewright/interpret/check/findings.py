"""What checking mode finds, and the error that reports it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.interpret.faults import InterpreterError
from tilewright.interpret.faults import Location

MOST_OF_A_KIND = 10


class Kind(enum.Enum):
    """Kinds of faults."""

    OUTSIDE = "access outside of an array"
    TILE = "tile outside of its array"
    PADDING = "result that depends on padding"
    UNWRITTEN = "read of memory that was never written"
    BESIDE = "store beside an array"
    LANES = "store of several values to one element"
    WRITES = "two blocks write one element"
    READ = "a block reads what another one writes"
    OVERFLOW = "overflow of an index"
    ASSUMPTION = "broken assumption"
    ASSERTION = "failed assertion"
    ORDER = "result that depends on the order of blocks"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: `index` is that of the element of `array` (a parameter, or an item of one) concerned."""

    kind: Kind
    message: str
    location: Location | None = None
    block: tuple[int, int, int] | None = None
    other_block: tuple[int, int, int] | None = None
    array: str | None = None
    index: tuple[int, ...] | None = None

    @property
    def file(self) -> str | None:
        """Source file of the kernel."""
        return None if self.location is None else self.location.file

    @property
    def line(self) -> int | None:
        """Line in `file`."""
        return None if self.location is None else self.location.line

    def __str__(self) -> str:
        where = "" if self.block is None else f"block {self.block}: "
        place = "" if self.location is None else f"\n  {self.location}"
        return f"{self.kind.value}\n  {where}{self.message}{place}"


class CheckError(InterpreterError):
    """Faults of a kernel that were found in checking mode; memory is as the kernel left it."""

    def __init__(self, kernel: str, findings: Sequence[Finding], arrays: str = "") -> None:
        """`arrays` says the names and shapes of the arrays of the launch."""
        self.kernel = kernel
        self.findings = tuple(findings)
        self.arrays = arrays
        super().__init__("\n".join([f"{len(findings)} fault(s) in kernel {kernel}", *map(str, findings)]))

    def __reduce__(self) -> tuple[type[CheckError], tuple[str, tuple[Finding, ...], str]]:
        return type(self), (self.kernel, self.findings, self.arrays)


class Findings:
    """Findings of one launch: the first one for each kind, line and array, and at most ten of a kind."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Finding] = {}

    def add(self, finding: Finding) -> None:
        """Keep a finding unless there are enough like it."""
        key = (finding.kind, finding.location, finding.array)
        alike = sum(each.kind is finding.kind for each in self._found.values())
        if key not in self._found and alike < MOST_OF_A_KIND:
            self._found[key] = finding

    def has(self, *kinds: Kind) -> bool:
        """Whether a fault of one of these kinds was found."""
        return any(each.kind in kinds for each in self._found.values())

    def all(self) -> tuple[Finding, ...]:
        """All that are kept, in the order in which they were found."""
        return tuple(self._found.values())
