"""Passed, failed, skipped with a reason, or not applicable: the verdict of one step."""

from dataclasses import dataclass
from dataclasses import field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """The four things a step can come to; a skip is never a pass."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"
    NOT_APPLICABLE = "n/a"


@dataclass(frozen=True, kw_only=True)
class StepOutcome:
    """One of the six steps of one operator."""

    step: str  # stub, kernel, registration, tests, benchmark, verify
    verdict: Verdict
    detail: str = ""  # what was found; for a failure: why and what to do
    seconds: float = 0.0
    data: dict[str, Any] = field(default_factory=dict)  # JSON-able extras: counts, compiled kernels
