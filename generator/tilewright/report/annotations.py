"""Findings for other tools: a JSON document, annotations of GitHub, and SARIF."""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tilewright import __version__
from tilewright.report.findings import shown
from tilewright.rules.engine import Report
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.rule import Rule

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def document(report: Report) -> dict[str, Any]:
    """The findings, with their fixes, and how many there are of each severity."""
    return {
        "files": len(report.files),
        "findings": [{**asdict(finding), "path": shown(finding.path)} for finding in report.findings],
        "counts": {severity.value: report.count(severity) for severity in Severity},
    }


def github(report: Report) -> Iterator[str]:
    """Workflow commands that GitHub shows beside the lines of a change."""
    for each in report.findings:
        place = {
            "file": shown(each.path),
            "line": each.line,
            "endLine": each.end_line,
            "col": each.column,
            "endColumn": each.end_column,
            "title": each.code,
        }
        values = ",".join(f"{key}={_escaped(str(value), ':,')}" for key, value in place.items())
        yield f"::{_GITHUB[each.severity]} {values}::{_escaped(each.message)}"


def sarif(report: Report, rules: Sequence[Rule]) -> dict[str, Any]:
    """A SARIF 2.1.0 log, which code scanning reads."""
    driver = {
        "name": "tilewright",
        "version": __version__,
        "rules": [
            {
                "id": rule.code,
                "name": type(rule).__name__,
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": rule.why},
                "help": {"text": rule.advice},
                "defaultConfiguration": {"level": _LEVELS[rule.severity]},
            }
            for rule in rules
        ],
    }
    results = [_result(finding) for finding in report.findings]
    return {"$schema": _SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(finding: Finding) -> dict[str, Any]:
    region = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": finding.end_line,
        "endColumn": finding.end_column,
    }
    place = {"artifactLocation": {"uri": shown(finding.path)}, "region": region}
    return {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place}],
    }


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
