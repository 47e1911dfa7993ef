"""Make the outcome of a step."""

from collections.abc import Sequence
from typing import Any

from tilewright.model.outcome import StepOutcome
from tilewright.model.outcome import Verdict
from tilewright.verify.device import Devices


def ok(step: str, detail: str = "", **data: Any) -> StepOutcome:
    """The step is done."""
    return StepOutcome(step=step, verdict=Verdict.OK, detail=detail, data=data)


def failed(step: str, problems: Sequence[str], **data: Any) -> StepOutcome:
    """The step is not done: the first problem in full, the others counted and kept in the data."""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    detail = problems[0] + more
    return StepOutcome(step=step, verdict=Verdict.FAILED, detail=detail, data={"problems": list(problems), **data})


def skipped(step: str, reason: str, **data: Any) -> StepOutcome:
    """Nothing can be said here."""
    return StepOutcome(step=step, verdict=Verdict.SKIPPED, detail=reason, data=data)


def skipped_without_gpu(step: str, devices: Devices) -> StepOutcome:
    """What runs on a GPU waits for one."""
    return skipped(step, devices.why_none, missing="gpu")


def not_applicable(step: str, reason: str) -> StepOutcome:
    """The step was recorded as one that does not apply."""
    return StepOutcome(step=step, verdict=Verdict.NOT_APPLICABLE, detail=reason)
