"""Which operators are behind the template, and by how much."""

import re
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path

from tilewright.config import ANSWERS
from tilewright.config import read_answers
from tilewright.config.versions import is_newer
from tilewright.config.versions import is_same
from tilewright.config.versions import recorded_version
from tilewright.model.host import Host
from tilewright.render import Source
from tilewright.update.changelog import Release
from tilewright.update.changelog import releases_between
from tilewright.update.detached import read_detached
from tilewright.update.templates import own_version


@dataclass(frozen=True, kw_only=True)
class Behind:
    """One operator that was made from an older template."""

    name: str
    version: str
    releases: tuple[Release, ...]  # since then, latest first


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How the operators of a host stand to the installed template."""

    behind: tuple[Behind, ...] = ()
    detached: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # steps that no update changes


def read_standing(host: Host, source: Source, ops: Sequence[str]) -> Standing:
    """How operators that were made with the template stand to the installed one."""
    detached = {op: tuple(read_detached(op, host.root)) for op in ops}
    return Standing(behind=read_behind(host, source, ops, target=own_version(source)), detached=detached)


def read_behind(host: Host, source: Source, ops: Iterable[str], *, target: str) -> tuple[Behind, ...]:
    """Those of the operators that are behind the version `target` of the template."""
    found = []
    for op in ops:
        version = recorded_version(op, read_answers(op, host.root))
        if not is_same(version, target) and not is_newer(version, target):
            releases = releases_between(source.changelog, version, target)
            found.append(Behind(name=op, version=version, releases=releases))
    return tuple(found)


def newest_recorded(root: Path) -> str | None:
    """The newest version of the template that an operator of the host was made from; no record is parsed for it."""
    newest: str | None = None
    for record in (root / ANSWERS).glob("*.yml"):
        found = re.search(r"(?m)^_commit: *[\"']?([^\"'\s]+)", record.read_text(encoding="utf-8", errors="replace"))
        if found and (newest is None or is_newer(found[1], newest)):
            newest = found[1]
    return newest
