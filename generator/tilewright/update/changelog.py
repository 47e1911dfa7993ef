"""What the changelog says of the versions between two of them."""

import re
from dataclasses import dataclass
from pathlib import Path

from tilewright.config.versions import is_newer
from tilewright.config.versions import is_same

UNRELEASED = "Unreleased"


@dataclass(frozen=True, kw_only=True)
class Release:
    """One version and its entries."""

    version: str
    entries: tuple[str, ...]


def releases_between(path: Path, old: str, new: str) -> tuple[Release, ...]:
    """The versions after `old`, up to and including `new`, latest first; what is not released yet counts as `new`."""
    releases = read_changelog(path, unreleased_as=new.removeprefix("v"))
    return tuple(
        release
        for release in releases
        if is_newer(release.version, old) and (is_newer(new, release.version) or is_same(new, release.version))
    )


def read_changelog(path: Path, *, unreleased_as: str) -> tuple[Release, ...]:
    """The sections of a file in the form of Keep a Changelog, as far as they have entries.

    What is not released is part of `unreleased_as`, unless a later version has been released.
    """
    if not path.is_file():
        return ()
    sections = re.split(r"(?m)^## \[([^\]]+)\].*\n", path.read_text(encoding="utf-8"))[1:]
    entries: dict[str, list[str]] = {}
    is_latest = not any(is_newer(name, unreleased_as) for name in sections[::2])
    for name, text in zip(sections[::2], sections[1::2], strict=True):
        if name == UNRELEASED and not is_latest:
            continue
        version = unreleased_as if name == UNRELEASED else name
        entries.setdefault(version, []).extend(_entries(text))
    return tuple(Release(version=version, entries=tuple(found)) for version, found in entries.items() if found)


def _entries(text: str) -> list[str]:
    found = re.findall(r"(?m)^- (.*(?:\n  .*)*)", text)
    return [" ".join(entry.split()) for entry in found]
