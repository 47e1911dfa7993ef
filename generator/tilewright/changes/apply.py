"""Write a change set to disk so that a kill at any moment leaves all of it or nothing to the next command."""

import os
from collections.abc import Callable
from pathlib import Path

from tilewright.changes import journal
from tilewright.changes.lock import JOURNAL
from tilewright.changes.lock import exclusive
from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange


def apply(changes: ChangeSet) -> None:
    """Write all changes, or none and say why."""
    apply_planned(changes.root, lambda: changes)


def apply_planned(root: Path, plan: Callable[[], ChangeSet]) -> ChangeSet:
    """Plan and write while no other command does, so that the plan is made from what is there."""
    with exclusive(root) as folder:
        assert folder is not None
        journal.settle(folder, root)
        changes = plan()
        for change in changes.changes:
            _check(root, change)
        _write(folder, changes)
    return changes


def recover(root: Path) -> None:
    """Finish what a killed command had begun to write; nothing to do in nearly every case."""
    if not (root / JOURNAL).is_dir():
        return
    with exclusive(root, wait=False) as folder:
        if folder is not None:
            journal.settle(folder, root)


def _write(folder: Path, changes: ChangeSet) -> None:
    try:
        journal.stage(folder, changes)
        journal.play(folder, changes.root)
    except BaseException:
        # The disk refused, or the user: play the way back.
        journal.stage(folder, _inverse(changes), suffix="old")
        journal.play(folder, changes.root)
        journal.clear(folder)
        raise
    journal.clear(folder)


def _inverse(changes: ChangeSet) -> ChangeSet:
    """The way back from what is on disk now."""
    reverted = []
    for change in changes.changes:
        target = changes.root / change.path
        now = target.read_bytes() if target.is_file() else None
        if now != change.before:
            reverted.append(FileChange(path=change.path, before=now, after=change.before))
    return ChangeSet(root=changes.root, changes=tuple(reverted))


def _check(root: Path, change: FileChange) -> None:
    """Refuse what cannot be written or would overwrite somebody's edit."""
    target = root / change.path
    found = target.read_bytes() if target.is_file() else None
    if found != change.before or (found is None and os.path.lexists(target)):
        raise UsageError(
            f"{target} is not what it was when the change was planned",
            expected="expected nothing there" if change.before is None else "expected the content that was read",
            hint="run the command again; if it is your own file, move it away first",
        )
    folder = target.parent
    while not folder.exists():
        folder = folder.parent
    for place in (folder, target) if target.exists() else (folder,):
        if not os.access(place, os.W_OK) or not folder.is_dir():
            raise UsageError(
                f"{place} cannot be written",
                expected="expected a file or folder that this user may change",
                hint="change its permissions or owner; nothing was written",
            )
