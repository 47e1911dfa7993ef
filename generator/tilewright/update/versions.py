"""The version of the template that an operator was made from, and how two of them compare."""

from typing import Any

from packaging.version import InvalidVersion
from packaging.version import Version

from tilewright.errors import UsageError


def tag(version: str) -> str:
    """The name that a version has in git and in a record: v1.2.0."""
    return version if parsed(version) is None or version.startswith("v") else f"v{version}"


def parsed(recorded: str) -> Version | None:
    """The version, or None for a commit between two of them."""
    try:
        return Version(recorded)
    except InvalidVersion:
        return None


def is_newer(version: str, than: str) -> bool:
    """Whether both are versions and the first is the later one."""
    first, second = parsed(version), parsed(than)
    return first is not None and second is not None and first > second


def is_same(version: str, other: str) -> bool:
    """Whether both name one version, with or without the v."""
    return version == other or (parsed(version) is not None and parsed(version) == parsed(other))


def recorded_version(op: str, answers: dict[str, Any]) -> str:
    """The version in an operator's record.

    Raises:
        UsageError: There is none.
    """
    recorded = answers.get("_commit")
    if not isinstance(recorded, str) or not recorded:
        raise UsageError(
            f".tilewright/ops/{op}.yml does not say which version of the template {op} was made from",
            expected="expected a line such as `_commit: v0.1.0`",
            hint="write it there, or take the file from the history",
        )
    return recorded
