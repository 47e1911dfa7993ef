"""An update that has begun: what it changes, kept until all of it is done or taken back."""

import json
import os
from base64 import b64decode
from base64 import b64encode
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from pathlib import PurePosixPath
from typing import Any

from tilewright.changes import lock
from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange

FOLDER = Path(".tilewright", ".update")
PLAN = "plan.json"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What an update does to files and to the index of git."""

    changes: ChangeSet
    target: str  # the version of the template
    conflicts: tuple[PurePosixPath, ...] = ()  # files whose conflicts a person must settle
    rejects: tuple[PurePosixPath, ...] = ()  # files beside them that hold the owner's side
    entries: Mapping[str, list[str]] = field(default_factory=dict)  # of the index, before
    unmerged: Mapping[str, list[str]] = field(default_factory=dict)  # of the index, for files with conflicts
    written: bool = False  # everything is in place, and a person is settling conflicts


def folder(root: Path) -> Path:
    """Where an update that has begun is kept; git is told to leave it alone."""
    return root / FOLDER


def read(root: Path) -> Progress | None:
    """The update that has begun, or None.

    Raises:
        UsageError: What is kept of it cannot be read.
    """
    path = folder(root) / PLAN
    try:
        return _parsed(json.loads(path.read_text(encoding="utf-8")), root)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} is not what an update of this tilewright leaves",
            expected="expected the file as it was written",
            hint=f"use the tilewright that began the update; or give the update up: rm -r {FOLDER}; git status",
        ) from error


def _parsed(content: Any, root: Path) -> Progress:
    changes = tuple(
        FileChange(path=PurePosixPath(path), before=_decoded(before), after=_decoded(after))
        for path, before, after in content["changes"]
    )
    return Progress(
        changes=ChangeSet(root=root, changes=changes),
        target=content["target"],
        conflicts=tuple(map(PurePosixPath, content["conflicts"])),
        rejects=tuple(map(PurePosixPath, content["rejects"])),
        entries=content["entries"],
        unmerged=content["unmerged"],
        written=content["written"],
    )


def require(root: Path) -> Progress:
    """The update that has begun.

    Raises:
        UsageError: None has.
    """
    found = read(root)
    if found is None:
        raise UsageError(
            f"no update is in progress in {root}",
            expected="expected one that was interrupted, or that has conflicts",
            hint="to begin one: tilewright update --all",
        )
    return found


def refuse_if_begun(root: Path) -> None:
    """Refuse to begin an update while another one has begun.

    Raises:
        UsageError: One has.
    """
    if (folder(root) / PLAN).exists():
        raise UsageError(
            f"an update is in progress in {root}",
            expected="expected the last one to be finished or taken back",
            hint="tilewright update --continue, or tilewright update --abort",
        )


def write(progress: Progress) -> None:
    """Keep the update; from then on it can be continued and taken back."""
    place = folder(progress.changes.root)
    content: dict[str, Any] = {
        "changes": [
            (str(change.path), _encoded(change.before), _encoded(change.after)) for change in progress.changes.changes
        ],
        "target": progress.target,
        "conflicts": list(map(str, progress.conflicts)),
        "rejects": list(map(str, progress.rejects)),
        "entries": dict(progress.entries),
        "unmerged": dict(progress.unmerged),
        "written": progress.written,
    }
    (place / "plan.tmp").write_text(json.dumps(content), encoding="utf-8")
    os.replace(place / "plan.tmp", place / PLAN)


def clear(root: Path) -> None:
    """Forget the update; the plan goes first, because without it there is none."""
    (folder(root) / PLAN).unlink(missing_ok=True)
    for path in folder(root).iterdir():
        if path.name != "lock":
            path.unlink()


@contextmanager
def exclusive(root: Path) -> Iterator[None]:
    """Let one command at a time work on the update of a host; what it keeps there is left only while one has begun.

    Raises:
        UsageError: Another one does.
    """
    with lock.exclusive(root, wait=False, folder=FOLDER) as place:
        if place is None:
            raise UsageError(
                f"another tilewright update is at work in {root}",
                expected="expected one at a time",
                hint="wait for it, then run the command again; nothing was changed",
            )
        (place / ".gitignore").write_text("*\n")
        try:
            yield
        finally:
            if not (place / PLAN).exists():
                clear(root)


def _encoded(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)
