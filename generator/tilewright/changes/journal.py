"""A journal of staged files that brings a change set to its end, also when the first attempt was killed."""

import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet

LIST = "changes.json"


def stage(folder: Path, changes: ChangeSet, *, suffix: str = "new") -> None:
    """Write the new content beside a list of what goes where; from then on the changes can be played."""
    entries = []
    for number, change in enumerate(changes.changes):
        staged = None
        if change.after is not None:
            staged = f"{number}.{suffix}"
            (folder / staged).write_bytes(change.after)
            with suppress(FileNotFoundError):
                shutil.copymode(changes.root / change.path, folder / staged)
        before = None if change.before is None else hashlib.sha256(change.before).hexdigest()
        entries.append({"path": str(change.path), "staged": staged, "before": before})
    (folder / "list.tmp").write_text(json.dumps(entries))
    os.replace(folder / "list.tmp", folder / LIST)


def play(folder: Path, root: Path) -> None:
    """Put every staged file in its place; what an earlier attempt has already moved is left alone."""
    for entry in json.loads((folder / LIST).read_text()):
        target = root / entry["path"]
        if entry["staged"] is None:
            if target.exists():
                _check(target, entry["before"], folder)
                target.unlink()
            _prune(target.parent, root)
        elif (folder / entry["staged"]).exists():
            _check(target, entry["before"], folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(folder / entry["staged"], target)


def settle(folder: Path, root: Path) -> None:
    """Finish what a killed command left: play a complete journal, discard an incomplete one."""
    if (folder / LIST).exists():
        play(folder, root)
    clear(folder)


def clear(folder: Path) -> None:
    """Forget the journal; the list goes first, because without it what is staged is void."""
    (folder / LIST).unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.name != "lock":
            path.unlink()


def _check(target: Path, before: str | None, folder: Path) -> None:
    """Refuse to overwrite what somebody wrote after the journal."""
    found = hashlib.sha256(target.read_bytes()).hexdigest() if target.exists() else None
    if found != before:
        raise UsageError(
            f"{target} was edited after a command that would have changed it was killed",
            expected=f"expected its content as of that command, or no journal in {folder}",
            hint=f"undo the edit and run the command again, or give the killed command up: rm -r {folder}",
        )


def _prune(folder: Path, root: Path) -> None:
    """Remove folders that are empty now; Python's cache of removed modules counts as nothing."""
    while folder != root and folder.is_dir() and all(path.name == "__pycache__" for path in folder.iterdir()):
        shutil.rmtree(folder)
        folder = folder.parent
