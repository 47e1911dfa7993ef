"""`tilewright check`: find what is wrong with operators from their source."""

import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from tilewright.cli import console
from tilewright.cli.changes import Diff
from tilewright.cli.changes import DryRun
from tilewright.cli.console import Json
from tilewright.cli.exits import Exit

if TYPE_CHECKING:
    from tilewright.rules.engine import Report
    from tilewright.rules.fixing import Mended
    from tilewright.rules.rule import Rule


class Format(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


def check(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH", help="Files and folders; default: the operators of the host.")
    ] = None,
    output_format: Annotated[
        Format, typer.Option(metavar="FORMAT", help="One of text, json, github, sarif.")
    ] = Format.TEXT,
    select: Annotated[str, typer.Option(metavar="CODE,...", help="Only these rules; TW2 is all of TW2xx.")] = "",
    ignore: Annotated[str, typer.Option(metavar="CODE,...", help="All but these rules.")] = "",
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended safely.")] = False,
    diff: Diff = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Find what is wrong with operators from their source alone; needs neither torch nor CUDA."""
    from tilewright.report.findings import summary
    from tilewright.rules.collecting import collect
    from tilewright.rules.collecting import surroundings
    from tilewright.rules.engine import check_files
    from tilewright.rules.fixing import mend
    from tilewright.rules.reading import readable
    from tilewright.rules.selection import choose
    from tilewright.rules.settings import read_settings

    start = time.perf_counter()
    settings = read_settings(Path())
    rules = choose(_codes(select) or settings.select, [*settings.ignore, *_codes(ignore)])
    files = collect(paths or _operators(), settings)
    around = readable(surroundings(files))
    report = check_files(files, rules, context=around)
    mended = mend(report, rules, context=around) if fix or diff else None
    if mended and not (diff or dry_run):
        from tilewright.changes import apply

        apply(mended.changes)
        report = check_files(files, rules, context=around)
    _show(Format.JSON if json else output_format, report, rules, mended, diff=diff, written=not (diff or dry_run))
    console.message(summary(report, time.perf_counter() - start))
    if report.failed:
        raise typer.Exit(Exit.FINDINGS)


def _codes(option: str) -> list[str]:
    return [code.strip().upper() for code in option.split(",") if code.strip()]


def _operators() -> list[Path]:
    """The package of the host around, and the tests and benchmarks of its operators."""
    from tilewright.cli.target import require_host

    host = require_host()
    places = (host.package, "tests/ops", "tests/benchmark", "tests/suites")
    return [host.root / place for place in places if (host.root / place).is_dir()]


def _show(
    output: Format, report: "Report", rules: "Sequence[Rule]", mended: "Mended | None", *, diff: bool, written: bool
) -> None:
    from tilewright.cli.changes import described
    from tilewright.cli.changes import show_pending
    from tilewright.report import annotations
    from tilewright.report import findings

    match output:
        case Format.JSON:
            document = annotations.document(report)
            if mended:
                changed = [described(change) for change in mended.changes.changes]
                document["fix"] = {"written": written, "mended": len(mended.findings), "files": changed}
                document["fix"] |= {"diff": mended.changes.diff()} if diff else {}
            console.document(document)
        case Format.SARIF:
            console.document(annotations.sarif(report, rules))
        case Format.GITHUB:
            for line in annotations.github(report):
                console.result(line)
        case Format.TEXT:
            for line in () if diff else findings.lines(report):
                console.result(line)
            if mended and not written:
                show_pending(mended.changes, diff=diff)
    if mended and written:
        files = len(mended.changes.changes)
        console.message(f"{len(mended.findings)} mended in {files} file{'s' * (files != 1)}")
