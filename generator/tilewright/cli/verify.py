"""`tilewright verify`: the six steps of one operator, of several or of all."""

from typing import TYPE_CHECKING
from typing import Annotated

import typer

from tilewright.cli.compile import Arch
from tilewright.cli.compile import Jobs
from tilewright.cli.compile import JUnit
from tilewright.cli.console import Json
from tilewright.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewright.model.outcome import StepOutcome


def verify(
    ops: Annotated[list[str] | None, typer.Argument(metavar="OP", help="Default: all.")] = None,
    arch: Arch = "",
    jobs: Jobs = None,
    require_gpu: Annotated[bool, typer.Option("--require-gpu", help="Exit with 3 where there is no GPU.")] = False,
    json: Json = False,
    junit: JUnit = None,
) -> None:
    """Take an operator through the six steps: stub, kernel, registration, tests, benchmark, verify."""
    from tilewright.cli import console
    from tilewright.cli.progress import progress_bar
    from tilewright.cli.target import require_host
    from tilewright.cutile.targets import select
    from tilewright.errors import NothingRanError
    from tilewright.report import json as documents
    from tilewright.report import junit as suites
    from tilewright.report.text import TextReport
    from tilewright.verify.operators import choose
    from tilewright.verify.operators import find_operators
    from tilewright.verify.session import Session
    from tilewright.verify.several import verify_all

    host, targets = require_host(), select(arch)
    chosen = choose(find_operators(host), ops or [], host)
    if not chosen:
        raise NothingRanError(
            f"{host.root} has no operator to verify.", hint="Name one, or add one: tilewright new my_op"
        )
    session = Session(chosen, targets=targets, jobs=jobs, progress_bar=progress_bar)
    text = None if json else TextReport()
    outcomes: dict[str, list[StepOutcome]] = {}
    with progress_bar("operators", shown=json and session.at_once > 1) as progress:
        for operator, taken in verify_all(chosen, session):
            outcomes[operator.name] = []
            if text:
                text.operator(operator.name)
            for outcome in taken:
                outcomes[operator.name].append(outcome)
                if text:
                    text.step(outcome)
            if progress:
                progress(len(outcomes), len(chosen))
    if junit:
        suites.write(suites.verify(outcomes), junit)
    document = documents.verify(host, outcomes)
    if json:
        console.document(document)
    else:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in document["counts"].items() if count)
        console.message(f"{len(chosen)} operator{'s' if len(chosen) > 1 else ''}: {counts}")
    code = exit_code([outcome for steps in outcomes.values() for outcome in steps], require_gpu=require_gpu)
    if code:
        raise typer.Exit(code)


def exit_code(outcomes: "Sequence[StepOutcome]", *, require_gpu: bool) -> Exit:
    """A failure comes first, then what is missing, then that nothing ran."""
    verdicts = {outcome.verdict for outcome in outcomes}
    missing = {outcome.data.get("missing") for outcome in outcomes}
    if "failed" in verdicts:
        return Exit.FINDINGS
    if "compiler" in missing or (require_gpu and "gpu" in missing):
        return Exit.MISSING
    return Exit.FINE if "ok" in verdicts else Exit.NOTHING_RAN
