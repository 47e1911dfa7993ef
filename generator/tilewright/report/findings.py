"""Findings for a person: a line each, on a terminal with the source around it."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from tilewright.rules.engine import Report
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity

_COLOURS = {Severity.ERROR: "\033[1;31m", Severity.WARNING: "\033[33m", Severity.INFO: "\033[36m"}
_BOLD, _DIM, _END = "\033[1m", "\033[2m", "\033[0m"
_TALL = 4  # lines of a finding that a frame shows


def lines(report: Report) -> Iterable[str]:
    """The text of a report; coloured and with frames where stdout is a terminal."""
    terminal = sys.stdout.isatty()
    colours = terminal and not os.environ.get("NO_COLOR")
    for finding in report.findings:
        yield _line(finding, colours=colours)
        if terminal and finding.path in report.texts:
            yield from frame(finding, report.texts[finding.path], colours=colours)


def frame(finding: Finding, text: str, *, colours: bool = False) -> Iterable[str]:
    """The source of a finding with a mark below, and what to do."""
    source = text.splitlines()
    last = min(finding.end_line, finding.line + _TALL - 1, len(source))
    margin = len(str(last))
    for number in range(finding.line, last + 1):
        shown = source[number - 1].expandtabs(1)
        yield f"{number:>{margin}} | {shown}".rstrip()
        start = finding.column if number == finding.line else len(shown) - len(shown.lstrip()) + 1
        end = finding.end_column if number == finding.end_line else len(shown) + 1
        mark = "^" * max(end - start, 1)
        yield f"{'':>{margin}} | {'':{start - 1}}{_painted(mark, _COLOURS[finding.severity], colours)}"
    note = f"{finding.help} [can be fixed with --fix]" if finding.fix else finding.help
    yield f"{'':>{margin}} = {_painted(note, _DIM, colours)}"
    yield ""


def summary(report: Report, seconds: float) -> str:
    """How much was found in how many files."""
    counts = [_counted(report.count(severity), severity) for severity in Severity if report.count(severity)]
    found = ", ".join(counts) or "nothing found"
    return f"{found} in {_counted(len(report.files), 'file')} ({seconds:.1f} s)"


def shown(path: Path) -> str:
    """A path as short as it can be: relative where it is below the current folder."""
    try:
        return path.absolute().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()


def _line(finding: Finding, *, colours: bool) -> str:
    code = _painted(finding.code, _COLOURS[finding.severity], colours)
    place = _painted(f"{shown(finding.path)}:{finding.line}:{finding.column}:", _BOLD, colours)
    return f"{place} {code} {finding.message}"


def _painted(text: str, colour: str, colours: bool) -> str:
    return f"{colour}{text}{_END}" if colours else text


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count != 1 and what != Severity.INFO)
