"""The page on the rules of `tilewright check`, from the rules themselves."""

from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from tilewright.rules.engine import check_sources
from tilewright.rules.registry import all_rules
from tilewright.rules.rule import Rule
from tilewright.rules.rule import Snippet
from writers.tables import table

GROUPS = {
    "TW0": "Files and comments",
    "TW1": "Dispatch and registration",
    "TW2": "Kernels",
    "TW3": "Host functions",
    "TW4": "Tests",
    "TW5": "Benchmarks",
}


def rules() -> Iterator[str]:
    """A table of all rules, then each with its reason, what to do, and a wrong and a right example."""
    yield from (
        "What `tilewright check` looks for. An *error* is wrong numbers, a crash or code that does not compile; a",
        "*warning* is wrong or slow for some inputs; an *info* never makes the command fail.",
        "How to use it: [Check operators](../how-to/check-operators.md).",
        "",
    )
    for beginning, group in GROUPS.items():
        found = [rule for rule in all_rules() if rule.code.startswith(beginning)]
        yield from (f"## {group}: {beginning}xx", "")
        rows = ((f"[{each.code}](#{each.code.lower()})", each.severity, each.title) for each in found)
        yield from table("code", "severity", "finds", rows=rows)
    yield from ("## Each rule", "")
    for rule in all_rules():
        yield from _rule(rule)


def _rule(rule: Rule) -> Iterator[str]:
    fixable = " `--fix` mends it." if _has_fix(rule) else ""
    yield from (f"### {rule.code}", "", f"**{rule.title}** ({rule.severity}).", "")
    yield from (f"{rule.why} {rule.advice}{fixable}", "")
    if rule.INVALID:
        yield from ("Wrong:", "", *_snippet(rule.INVALID[0], rule.VALID[0]))
        yield from ("Right:", "", *_snippet(rule.VALID[0], rule.INVALID[0]))


def _has_fix(rule: Rule) -> bool:
    for snippet in rule.INVALID:
        files = snippet if isinstance(snippet, Mapping) else {rule.snippet_path: snippet}
        report = check_sources({Path(path): dedent(text) for path, text in files.items()}, [rule])
        if any(finding.fix for finding in report.findings):
            return True
    return False


def _snippet(snippet: Snippet, other: Snippet) -> Iterator[str]:
    """One block; of several files those in which the two examples differ."""
    if not isinstance(snippet, Mapping):
        yield from ("```python", *dedent(snippet).strip("\n").splitlines(), "```", "")
        return
    others = other if isinstance(other, Mapping) else {}
    for path, text in snippet.items():
        if others.get(path) != text:
            yield from ("```python", f"# {path}", *dedent(text).strip("\n").splitlines(), "```", "")
