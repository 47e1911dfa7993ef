"""Which operators are behind the template, and by how much."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tilewright.config import read_answers
from tilewright.model.host import Host
from tilewright.render import Source
from tilewright.update.changelog import Release
from tilewright.update.changelog import releases_between
from tilewright.update.templates import own_version
from tilewright.update.versions import is_newer
from tilewright.update.versions import is_same
from tilewright.update.versions import recorded_version


@dataclass(frozen=True, kw_only=True)
class Behind:
    """One operator that was made from an older template."""

    name: str
    version: str
    releases: tuple[Release, ...]  # since then, latest first


def read_behind(host: Host, source: Source, ops: Iterable[str], *, target: str | None = None) -> tuple[Behind, ...]:
    """Those of the operators that are behind `target`, or behind the installed template."""
    target = target or own_version(source)
    found = []
    for op in ops:
        version = recorded_version(op, read_answers(op, host.root))
        if not is_same(version, target) and not is_newer(version, target):
            releases = releases_between(source.changelog, version, target)
            found.append(Behind(name=op, version=version, releases=releases))
    return tuple(found)


def newest_recorded(root: Path, ops: Iterable[str]) -> str | None:
    """The newest version of the template that an operator of the host was made from."""
    newest: str | None = None
    for op in ops:
        version = str(read_answers(op, root).get("_commit", ""))
        if newest is None or is_newer(version, newest):
            newest = version
    return newest
