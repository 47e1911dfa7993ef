"""Apply fixes: several at once where they do not overlap, again until nothing more can be mended."""

import ast
from collections.abc import Callable
from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.rules.finding import Edit
from tilewright.rules.finding import Finding

_PASSES = 10


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """The text after all fixes, and the findings that they mended."""

    text: str
    mended: tuple[Finding, ...]


def fix(text: str, check: Callable[[str], Iterable[Finding]]) -> Fixed:
    """Mend what `check` finds in a text and has a fix for.

    A fix is kept only if the text still parses and fewer findings of its code are left.
    """
    mended: list[Finding] = []
    refused: set[tuple[str, str]] = set()
    for _ in range(_PASSES):
        findings = [each for each in check(text) if each.fix and (each.code, each.message) not in refused]
        chosen = _apart(findings)
        if not chosen:
            break
        attempt = apply(text, (edit for each in chosen for edit in (each.fix.edits if each.fix else ())))
        if _better(attempt, text, chosen, check):
            text, mended = attempt, [*mended, *chosen]
            continue
        for each in chosen:  # one of them is at fault: try them alone
            attempt = apply(text, each.fix.edits if each.fix else ())
            if _better(attempt, text, [each], check):
                text, mended = attempt, [*mended, each]
                break
            refused.add((each.code, each.message))
    return Fixed(text=text, mended=tuple(mended))


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made; they must not overlap."""
    starts = _line_starts(text)
    for edit in sorted(set(edits), key=_range, reverse=True):
        start = starts[edit.line - 1] + edit.column - 1
        end = starts[edit.end_line - 1] + edit.end_column - 1
        text = text[:start] + edit.text + text[end:]
    return text


def _better(attempt: str, text: str, chosen: Iterable[Finding], check: Callable[[str], Iterable[Finding]]) -> bool:
    try:
        ast.parse(attempt)
    except (SyntaxError, ValueError):
        return False
    before, after = ([finding.code for finding in check(each)] for each in (text, attempt))
    return all(after.count(code) < before.count(code) for code in {each.code for each in chosen})


def _apart(findings: Iterable[Finding]) -> list[Finding]:
    """The first findings whose edits do not touch; equal edits, as of one missing import, count once."""
    chosen: list[Finding] = []
    taken: set[Edit] = set()
    for finding in findings:
        edits = set(finding.fix.edits) if finding.fix else set()
        if not any(_touch(edit, other) for edit in edits - taken for other in taken):
            chosen.append(finding)
            taken |= edits
    return chosen


def _touch(first: Edit, second: Edit) -> bool:
    one, other = _range(first), _range(second)
    return one[0] <= other[1] and other[0] <= one[1]


def _range(edit: Edit) -> tuple[tuple[int, int], tuple[int, int]]:
    return (edit.line, edit.column), (edit.end_line, edit.end_column)


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for index, character in enumerate(text):
        if character == "\n" or (character == "\r" and text[index + 1 : index + 2] != "\n"):
            starts.append(index + 1)
    return starts
