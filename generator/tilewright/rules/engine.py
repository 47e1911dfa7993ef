"""Run rules over files: findings in order, with those taken back that a comment ignores."""

import warnings
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from tilewright.rules.files.ignoring import CommentRule
from tilewright.rules.files.source import SyntaxErrors
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.ignores import ignores
from tilewright.rules.project import Project
from tilewright.rules.reading import read
from tilewright.rules.registry import all_rules
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

_PLACE = attrgetter("path", "line", "column", "code", "message")


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was found in how many files."""

    findings: tuple[Finding, ...]
    files: tuple[Path, ...]
    texts: Mapping[Path, str] = field(default_factory=dict, repr=False)  # of files with findings, for code frames

    def count(self, severity: Severity) -> int:
        """Findings of one severity."""
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def failed(self) -> bool:
        """Whether there is an error or a warning."""
        return any(finding.severity is not Severity.INFO for finding in self.findings)


def check_files(
    paths: Iterable[Path], rules: Sequence[Rule] | None = None, *, context: Mapping[Path, str] | None = None
) -> Report:
    """Check files; `context`, texts by path, is only there to judge them."""
    texts: dict[Path, str] = {}
    findings: list[Finding] = []
    files = tuple(dict.fromkeys(paths))
    for path in files:
        text = read(path)
        if isinstance(text, str):
            texts[path] = text
        else:
            findings.append(text)
    report = check_sources(texts, rules, context=context)
    run = {rule.code for rule in all_rules() if rules is None or rule in rules}
    unread = [each for each in findings if each.code in run]
    return replace(report, findings=_sorted([*unread, *report.findings]), files=files)


def check_sources(
    sources: Mapping[Path, str], rules: Sequence[Rule] | None = None, *, context: Mapping[Path, str] | None = None
) -> Report:
    """Check texts by path; nothing is read from the disk."""
    rules = all_rules() if rules is None else rules
    parsed = [_parse(path, text) for path, text in sources.items()]
    modules = [each for each in parsed if isinstance(each, Module)]
    project = Project(modules, context)
    by_path: dict[Path, list[Finding]] = {}
    for rule in rules:
        for finding in rule.check_project(project):
            by_path.setdefault(finding.path, []).append(finding)
    findings = [each for each in parsed if isinstance(each, Finding) and any(each.code == rule.code for rule in rules)]
    for module in modules:
        found = by_path.get(module.path, [])
        for rule in rules:
            found += rule.check(module)
        findings += _without_ignored(module, found, rules)
    return Report(findings=_sorted(findings), files=tuple(sources), texts=dict(sources))


def _parse(path: Path, text: str) -> Module | Finding:
    try:
        module = Module(path, text)
        with warnings.catch_warnings(action="ignore"):  # what the compiler only doubts is for other linters
            compile(module.tree, str(path), "exec", dont_inherit=True)  # refuses more than the parser: `return` alone
        return module
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return SyntaxErrors().at(path, error)


def _without_ignored(module: Module, findings: Sequence[Finding], rules: Sequence[Rule]) -> list[Finding]:
    comments = ignores(module)
    kept = []
    for finding in findings:
        covering = [ignore for ignore in comments if ignore.covers(finding.code, finding.line)]
        for ignore in covering:
            ignore.used.add(finding.code)
        if not covering:
            kept.append(finding)
    run = {rule.code for rule in rules}
    for rule in rules:
        if isinstance(rule, CommentRule):
            kept += rule.check_comments(module, comments, run)
    return kept


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """By place, without repetitions."""
    ordered = sorted(findings, key=lambda each: (str(each.path), each.line, each.column, each.code, each.message))
    return tuple(next(group) for _, group in groupby(ordered, key=_PLACE))
