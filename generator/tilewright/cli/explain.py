"""`tilewright explain`: what a code or an error means, what causes it, and what to do."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from tilewright.cli import console
from tilewright.cli.console import Json
from tilewright.cli.exits import Exit

if TYPE_CHECKING:
    from tilewright.explain.explanation import Explanation

_TRY = (
    "give the whole traceback: tilewright explain < traceback.txt",
    "look for faults in the source: tilewright check",
    "run the test with checks: pytest --tile-device=interpret --tile-check",
    "see whether the environment is complete: tilewright doctor",
)


def explain(
    what: Annotated[
        str,
        typer.Argument(metavar="WHAT", help="Code of a rule, name or text of an error; default: standard input."),
    ] = "",
    last: Annotated[bool, typer.Option("--last", help="The failures of the last run of pytest here.")] = False,
    json: Json = False,
) -> None:
    """Explain a code of `tilewright check`, or the error in a text or traceback."""
    from tilewright.errors import UsageError
    from tilewright.explain.explanation import explain as explain_one

    if last:
        if what:
            raise UsageError("--last explains what pytest failed with", expected="expected nothing else beside it")
        _explain_last(json=json)
        return
    found = explain_one(_read() if what in ("", "-") else what)
    _show(found, json=json)
    if not found.known:
        _nothing_known("nothing is known of this text")


def _read() -> str:
    from tilewright.errors import UsageError

    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "there is nothing to explain",
            expected="expected a code, the text of an error or --last",
            hint="for example: tilewright explain TW203, or tilewright explain < traceback.txt",
        )
    return sys.stdin.read()


def _show(found: "Explanation", *, json: bool) -> None:
    from tilewright.report import explain as report

    if json:
        console.document(report.document(found))
    elif found.known:
        console.result("\n".join(report.lines(found)).rstrip())


def _explain_last(*, json: bool) -> None:
    from tilewright.explain.explanation import explain_text
    from tilewright.explain.explanation import together
    from tilewright.explain.failures import last_failures
    from tilewright.report import explain as report

    failures = {failure.test: explain_text(failure.text) for failure in last_failures(Path.cwd())}
    found = together(failures.values())
    if json:
        console.document(report.document(found, failures))
    else:
        for line in report.overview(failures):
            console.result(line)
        if found.known:
            console.result("")
            _show(found, json=False)
    if not failures:
        console.message("nothing failed in the last run of pytest")
    elif not found.known:
        _nothing_known("nothing is known of these failures")


def _nothing_known(what: str) -> None:
    console.message(what)
    for line in _TRY:
        console.message(f"  {line}")
    raise typer.Exit(Exit.FINDINGS)
