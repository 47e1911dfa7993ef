"""The six steps of one operator, in order."""

import time
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace

from tilewright.model.operator import Operator
from tilewright.model.outcome import StepOutcome
from tilewright.model.outcome import Verdict
from tilewright.verify import benchmark
from tilewright.verify import kernel
from tilewright.verify import quality
from tilewright.verify import registration
from tilewright.verify import stub
from tilewright.verify import tests
from tilewright.verify.advice import with_advice
from tilewright.verify.outcomes import failed
from tilewright.verify.outcomes import not_applicable
from tilewright.verify.outcomes import ok
from tilewright.verify.outcomes import skipped
from tilewright.verify.reading import UnreadableError
from tilewright.verify.session import Session


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a step asks of the files, and of what runs where nothing is wrong with them."""

    name: str
    problems: Callable[[Operator], Iterator[str]] | None = None
    run: Callable[[Operator, Session], StepOutcome] | None = None


STEPS = (
    Step(name="stub", problems=stub.problems),
    Step(name="kernel", problems=kernel.problems),
    Step(name="registration", problems=registration.problems, run=registration.run),
    Step(name="tests", problems=tests.problems, run=tests.run),
    Step(name="benchmark", problems=benchmark.problems, run=benchmark.run),
    Step(name="verify", run=quality.run),
)


def verify(operator: Operator, session: Session) -> Iterator[StepOutcome]:
    """Take the steps one after the other; what one finds does not keep the next from being taken."""
    for step in STEPS:
        start = time.perf_counter()
        outcome = look(step, operator)
        if step.run and outcome.verdict in (Verdict.OK, Verdict.SKIPPED):
            outcome = step.run(operator, session)
        yield replace(with_advice(outcome), seconds=round(time.perf_counter() - start, 3))


def look(step: Step, operator: Operator) -> StepOutcome:
    """The step as far as the files show."""
    if step.name in operator.skip:
        return not_applicable(step.name, operator.skip[step.name])
    if step.problems is None:
        return skipped(step.name, f"not run: tilewright verify {operator.name}")
    try:
        found = list(step.problems(operator))
    except UnreadableError as error:
        found = [str(error)]
    return failed(step.name, found) if found else ok(step.name)
