"""Read what the last run of pytest failed with."""

import json
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import MissingError

TITLE = "tilewright"  # of the section that the plugin adds to a report, and of the property in JUnit files
FAILURES = "tilewright/failures"  # key of pytest's cache, set by the plugin: a list of [test, text]
_CACHE = Path(".pytest_cache/v")
_NEEDS = "run pytest in the environment of tilewright, without -p no:cacheprovider, and explain again"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One test, or file, and what it said."""

    test: str
    text: str


def last_failures(folder: Path) -> list[Failure]:
    """The failures of the last run in this folder, or in the nearest around it that pytest was run in.

    Raises:
        MissingError: There was no run, or none that kept what failed.
    """
    for around in (folder, *folder.parents):
        if (around / _CACHE).is_dir():
            return _read(around / _CACHE)
    raise MissingError(f"no run of pytest is known in {folder}", hint=_NEEDS)


def _read(cache: Path) -> list[Failure]:
    path = cache / FAILURES
    if not path.is_file():
        raise MissingError(
            f"{cache.parent} has no texts of failures", expected="they come from tilewright's plugin", hint=_NEEDS
        )
    try:
        return [Failure(test=test, text=text) for test, text in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, TypeError) as error:
        raise MissingError(f"{path} cannot be read", hint="run pytest again") from error
