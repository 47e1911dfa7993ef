"""Explanations of rules and errors, for a person and for a machine."""

from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import asdict
from textwrap import dedent
from textwrap import indent

from tilewright.explain.explanation import Explanation
from tilewright.explain.matching import Match
from tilewright.report.json import Document
from tilewright.rules.rule import Rule
from tilewright.rules.rule import Snippet


def lines(found: Explanation) -> Iterator[str]:
    """Everything that is known, errors first."""
    for match in found.errors:
        yield from _error(match)
    for rule in found.rules:
        yield from _rule(rule)


def document(found: Explanation, failures: Mapping[str, Explanation] | None = None) -> Document:
    """The same for a machine; `failures` are the tests of the last run, each with its own explanation."""
    result: Document = {
        "errors": [_error_document(match) for match in found.errors],
        "rules": [_rule_document(rule) for rule in found.rules],
    }
    if failures is not None:
        result["failures"] = [
            {"test": test, "errors": [match.entry.name for match in each.errors], "rules": [r.code for r in each.rules]}
            for test, each in failures.items()
        ]
    return result


def overview(failures: Mapping[str, Explanation]) -> Iterator[str]:
    """A line for each failed test, with the names of the errors."""
    for test, found in failures.items():
        names = [match.entry.name for match in found.errors[:1]] or [rule.code for rule in found.rules]
        yield f"{test}: {', '.join(names) or 'nothing is known of it'}"


def _error(match: Match) -> Iterator[str]:
    entry = match.entry
    yield f"{entry.title} [{entry.name}]"
    if match.message:
        yield f"  message: {match.message}"
    yield ""
    yield "Likely causes, the likeliest first:" if len(entry.causes) > 1 else "Cause:"
    for number, cause in enumerate(entry.causes, start=1):
        yield f"  {number}. {cause.what}."
        yield f"     Tell by: {cause.tell}."
    yield ""
    yield from _snippets(entry.wrong, entry.right)
    if entry.rules:
        yield f"Found before anything runs by tilewright check: {', '.join(entry.rules)}"
        yield ""


def _rule(rule: Rule) -> Iterator[str]:
    yield f"{rule.code} {rule.title} ({rule.severity})"
    yield ""
    yield f"Why: {rule.why}"
    yield f"What to do: {rule.advice}"
    yield ""
    if rule.INVALID:
        yield from _snippets(*differing(rule))


def _snippets(wrong: str, right: str) -> Iterator[str]:
    for title, text in (("Wrong:", wrong), ("Right:", right)):
        yield title
        yield indent(dedent(text).strip("\n"), "    ")
        yield ""


def differing(rule: Rule) -> tuple[str, str]:
    """The first wrong and right example; of several files those in which they differ."""
    return _text(rule.INVALID[0], rule.VALID[0]), _text(rule.VALID[0], rule.INVALID[0])


def _text(snippet: Snippet, other: Snippet) -> str:
    if not isinstance(snippet, Mapping):
        return dedent(snippet).strip("\n")
    others = other if isinstance(other, Mapping) else {}
    shown = ((path, text) for path, text in snippet.items() if others.get(path) != text)
    return "\n\n".join(f"# {path}\n{dedent(text).strip()}" for path, text in shown)


def _error_document(match: Match) -> Document:
    entry = match.entry
    return {
        "name": entry.name,
        "title": entry.title,
        "message": match.message,
        "causes": [asdict(cause) for cause in entry.causes],
        "wrong": dedent(entry.wrong).strip("\n"),
        "right": dedent(entry.right).strip("\n"),
        "rules": list(entry.rules),
    }


def _rule_document(rule: Rule) -> Document:
    wrong, right = differing(rule) if rule.INVALID else ("", "")
    return {
        "code": rule.code,
        "title": rule.title,
        "severity": rule.severity.value,
        "why": rule.why,
        "advice": rule.advice,
        "wrong": wrong,
        "right": right,
    }
