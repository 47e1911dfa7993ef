"""Carry answers over to a template whose questions were renamed or split, by rules that the template ships as data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.catalogue.data_file import read_data
from tilewright.config.versions import is_newer
from tilewright.errors import RenderError

RULES = "migrations.yml"
KINDS = {"version", "rename", "split"}


def migrate(answers: Mapping[str, Any], template: Path, *, old: str, new: str) -> dict[str, Any]:
    """The answers as the questions of the new version want them; a rule applies to operators older than its version.

    `rename: {old: new}` moves an answer to another question; `split: {question: {answer: {question: answer}}}` puts
    several answers in the place of one.

    Raises:
        RenderError: The rules of the template are not ones.
    """
    migrated = dict(answers)
    for rule in _rules(template / RULES):
        if not is_newer(rule["version"], old) or is_newer(rule["version"], new):
            continue
        for before, after in rule.get("rename", {}).items():
            if before in migrated:
                migrated[after] = migrated.pop(before)
        for question, parts in rule.get("split", {}).items():
            if str(migrated.get(question)) in parts:
                migrated |= parts[str(migrated.pop(question))]
    return migrated


def _rules(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    rules: Any = read_data(path)
    for rule in rules or []:
        if not isinstance(rule, dict) or "version" not in rule or not rule.keys() <= KINDS:
            raise RenderError(
                f"{path.name} of the template has a rule {rule!r}",
                expected=f"expected a mapping with version and one or more of {', '.join(sorted(KINDS))}",
                hint="report it with the version of tilewright",
            )
    return rules or []
