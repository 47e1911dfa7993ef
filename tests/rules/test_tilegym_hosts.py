"""Findings in the host functions of TileGym are all in the list of verdicts, and nearly all true."""

import importlib.util
import re
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from pathlib import Path

import pytest

from tilewright.rules.engine import check_files
from tilewright.rules.finding import Severity
from tilewright.rules.registry import all_rules

VERDICTS = Path(__file__).parent / "tilegym" / "host.md"
ROW = re.compile(r"\| (TW\d+) \| (\S+):(\d+) \| (error|warning) \| (true|false)")


def installed() -> Path | None:
    """The folder of the release that the list is about, or None."""
    try:
        spec = importlib.util.find_spec("tilegym") if version("tilegym") == "1.5.1" else None
    except PackageNotFoundError:
        return None
    return Path(spec.origin).parent if spec and spec.origin else None


def judged() -> list[tuple[str, str, int, str, str]]:
    """Code, path, line, severity and verdict of every row."""
    rows = ROW.findall(VERDICTS.read_text())
    return [(code, path, int(line), severity, verdict) for code, path, line, severity, verdict in rows]


@pytest.mark.skipif(installed() is None, reason="tilegym 1.5.1 is not installed")
def test_every_finding_is_judged() -> None:
    folder = installed()
    rules = [rule for rule in all_rules() if rule.code.startswith(("TW3", "TW4", "TW5"))]
    report = check_files(sorted(folder.rglob("*.py")), rules)
    found = [
        (each.code, each.path.relative_to(folder).as_posix(), each.line, str(each.severity))
        for each in report.findings
        if each.severity is not Severity.INFO
    ]
    assert sorted(found) == sorted(row[:4] for row in judged())


@pytest.mark.parametrize(("severity", "least"), [("error", 0.95), ("warning", 0.8)])
def test_nearly_all_findings_are_true(severity: str, least: float) -> None:
    verdicts = [row[4] for row in judged() if row[3] == severity]
    assert verdicts.count("true") >= least * len(verdicts) > 0
