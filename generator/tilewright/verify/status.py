"""Operators, the six steps as far as their files show, and the template version of each; nothing is imported or run."""

from dataclasses import dataclass

from tilewright.model.host import Host
from tilewright.model.outcome import StepOutcome
from tilewright.verify.operators import find_operators
from tilewright.verify.steps import STEPS
from tilewright.verify.steps import look


@dataclass(frozen=True, kw_only=True)
class OperatorStatus:
    """One row of the table."""

    name: str
    template_version: str  # empty: written by hand
    steps: tuple[StepOutcome, ...]


def read_status(host: Host) -> list[OperatorStatus]:
    """A row for each operator, by name."""
    return [
        OperatorStatus(
            name=operator.name,
            template_version=operator.template_version,
            steps=tuple(look(step, operator) for step in STEPS),
        )
        for operator in find_operators(host)
    ]
