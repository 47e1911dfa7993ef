"""The version of the template that an operator was made from, and how two of them compare."""

import re
from typing import Any

from packaging.version import InvalidVersion
from packaging.version import Version

from tilewright.errors import UsageError

# What `git describe --long` writes for the commit of a release: a record made from a clone without tags.
_DESCRIBED = re.compile(r"(.+)-0-g[0-9a-f]{7,}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")  # 940b525 would be a version too


def tag(version: str) -> str:
    """The name that a version has in git: v1.2.0; what is no version is returned as it is."""
    name = _released(version)
    return version if parsed(name) is None else f"v{name.removeprefix('v')}"


def parsed(recorded: str) -> Version | None:
    """The version, or None for a commit between two of them."""
    if _COMMIT.fullmatch(recorded):
        return None
    try:
        return Version(_released(recorded))
    except InvalidVersion:
        return None


def _released(recorded: str) -> str:
    described = _DESCRIBED.fullmatch(recorded)
    return described[1] if described else recorded


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
