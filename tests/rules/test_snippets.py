"""Every rule finds something in each of its invalid snippets and nothing in the valid ones, and its fixes mend."""

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from tilewright.rules.edits import fix
from tilewright.rules.engine import check_sources
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.registry import all_rules
from tilewright.rules.rule import Rule
from tilewright.rules.rule import Snippet

VALID = [pytest.param(rule, each, id=f"{rule.code}-{n}") for rule in all_rules() for n, each in enumerate(rule.VALID)]
INVALID = [
    pytest.param(rule, each, id=f"{rule.code}-{n}") for rule in all_rules() for n, each in enumerate(rule.INVALID)
]
SAYS_WHAT_TO_DO = re.compile(r"[:;] \S|must|use |is meant")


def sources(rule: Rule, snippet: Snippet) -> dict[Path, str]:
    files = snippet if isinstance(snippet, Mapping) else {rule.snippet_path: snippet}
    return {Path(path): textwrap.dedent(text) for path, text in files.items()}


def findings(rule: Rule, snippet: Snippet) -> tuple[Finding, ...]:
    return check_sources(sources(rule, snippet)).findings


@pytest.mark.parametrize(("rule", "snippet"), VALID)
def test_a_valid_snippet_is_left_alone(rule: Rule, snippet: Snippet) -> None:
    found = findings(rule, snippet)
    assert [each for each in found if each.code == rule.code or each.severity is Severity.ERROR] == []


@pytest.mark.parametrize(("rule", "snippet"), INVALID)
def test_an_invalid_snippet_is_found(rule: Rule, snippet: Snippet) -> None:
    found = [each for each in findings(rule, snippet) if each.code == rule.code]
    assert found
    for each in found:
        assert SAYS_WHAT_TO_DO.search(each.message) or rule.code == "TW001"  # whose message is Python's
        assert "\n" not in each.message
        assert 1 <= each.line <= each.end_line


@pytest.mark.parametrize(("rule", "snippet"), INVALID)
def test_a_fix_removes_what_it_mends(rule: Rule, snippet: Snippet) -> None:
    files = sources(rule, snippet)
    for path, text in files.items():

        def check(changed: str, path: Path = path) -> list[Finding]:
            report = check_sources({**files, path: changed}, [rule])
            return [each for each in report.findings if each.path == path]

        fixable = [each for each in check(text) if each.fix]
        result = fix(text, check)
        assert bool(fixable) == bool(result.mended)
        assert not any(each.fix for each in check(result.text))


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_rule_explains_itself(rule: Rule) -> None:
    assert rule.title
    assert rule.why.endswith(".")
    assert rule.advice.endswith(".")
    assert rule.VALID
    assert rule.code.startswith("TW")
