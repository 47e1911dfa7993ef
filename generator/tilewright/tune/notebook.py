"""Keep what was compiled and timed, so that a search that was stopped goes on where it was.

One file for each kernel file, benchmark, GPU and set of versions: a line of JSON says what it is about, each further
line is one result. What holds of a launch is kept under what the launch is, so that it serves every table that leads
to it.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from tilewright.aot.cache import OFF
from tilewright.aot.cache import VARIABLE


def folder() -> Path | None:
    """Where notebooks are; None where TILEWRIGHT_CACHE_DIR turns the cache off."""
    named = os.environ.get(VARIABLE)
    if named is None:
        return user_cache_path("tilewright") / "tunings"
    return None if named.lower() in OFF else Path(named) / "tunings"


class Notebook:
    """Results of one operator on one GPU."""

    def __init__(self, folder: Path | None, name: str, about: Mapping[str, Any], date: str) -> None:
        self._results: dict[str, Any] = {}
        self._path = folder and folder / f"{name}-{digest(json.dumps(about, sort_keys=True).encode())}.jsonl"
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if not self._path.exists():
            self._path.write_text(json.dumps({**about, "date": date}) + "\n", encoding="utf-8")
        for line in self._path.read_text(encoding="utf-8").splitlines()[1:]:
            try:
                result = json.loads(line)
                self._results[result["key"]] = result["found"]
            except (ValueError, KeyError, TypeError):  # the line that a kill cut short
                continue

    def find(self, *key: object) -> Any:
        """What was kept under a key, or None."""
        return self._results.get(digest(json.dumps(key).encode()))

    def keep(self, found: Any, *key: object) -> None:
        """Keep a result from now on, whatever happens to this process."""
        name = digest(json.dumps(key).encode())
        self._results[name] = found
        if self._path:
            with self._path.open("a", encoding="utf-8") as file:
                file.write("\n" * (not self._ends_with_newline()) + json.dumps({"key": name, "found": found}) + "\n")

    def _ends_with_newline(self) -> bool:
        assert self._path
        with self._path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"


def digest(content: bytes) -> str:
    """A short name for some content."""
    return hashlib.sha256(content).hexdigest()[:16]
