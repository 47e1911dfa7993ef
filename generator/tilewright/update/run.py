"""Carry an update out, bring an interrupted one to its end, or take it back to the last byte."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from pathlib import PurePosixPath

from tilewright.changes import apply_planned
from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange
from tilewright.update import progress
from tilewright.update.detached import DETACHED
from tilewright.update.hunks import has_markers
from tilewright.update.outcome import Plan
from tilewright.update.progress import Progress
from tilewright.update.repository import Repository

_MODE = "100644"


def carry_out(plan: Plan) -> None:
    """Write every file and put the changes into the index of git; conflicts keep the update open.

    Raises:
        UsageError: A file is not as committed or changed meanwhile, or another update or merge is in progress.
    """
    root = plan.changes.root
    repository = Repository.around(root)
    begun = False

    def begin() -> ChangeSet:
        nonlocal begun
        progress.refuse_if_begun(root)
        if repository:
            repository.refuse_if_busy()
            repository.refuse_if_locked()
            repository.refuse_if_hidden(plan.gone)
            repository.refuse_if_unclean(path for path in _touched(plan) if path.parent != DETACHED)
        begun = True
        progress.write(_begun(plan, repository))
        return plan.changes

    with progress.exclusive(root):
        try:
            apply_planned(root, begin)
        except BaseException:
            if begun:  # every file is as it was
                progress.clear(root)
            raise
        _finish(progress.require(root), repository)


def continue_(root: Path) -> Progress:
    """Finish an update: what a kill left to do, or the files whose conflicts a person has settled.

    Returns what is left open: conflicts after a kill, else none.

    Raises:
        UsageError: No update is in progress, or a conflict is not settled.
    """
    repository = Repository.around(root)
    with progress.exclusive(root):
        found = progress.require(root)
        if found.written:
            _refuse_if_undone(found)
            _refuse_open_conflicts(found)
            if repository:
                repository.stage(found.conflicts, {}, progress.folder(root))
            progress.clear(root)
            return replace(found, conflicts=(), rejects=())
        apply_planned(root, lambda: _remaining(found))
        _finish(found, repository)
        return found


def abort(root: Path) -> tuple[PurePosixPath, ...]:
    """Take an update back; what was edited since is put beside its file. Returns these copies.

    Raises:
        UsageError: No update is in progress.
    """
    repository = Repository.around(root)
    with progress.exclusive(root):
        found = progress.require(root)
        kept: list[PurePosixPath] = []
        apply_planned(root, lambda: _way_back(found, kept))
        if repository:
            repository.stage((), found.entries, progress.folder(root))
        progress.clear(root)
        return tuple(kept)


def _way_back(found: Progress, kept: list[PurePosixPath]) -> ChangeSet:
    root, changes = found.changes.root, []
    for change in found.changes.changes:
        now = _read(root / change.path)
        if now == change.before:
            continue
        if now is not None and now != change.after:
            aside = _free_name(change.path, root)
            kept.append(aside)
            changes.append(FileChange(path=aside, before=None, after=now))
        changes.append(FileChange(path=change.path, before=now, after=change.before))
    return ChangeSet(root=root, changes=tuple(changes))


def _begun(plan: Plan, repository: Repository | None) -> Progress:
    unmerged: dict[str, list[str]] = {}
    if repository:
        for path, sides in plan.unmerged:
            stages = enumerate(sides, start=1)
            unmerged[str(path)] = [
                f"{_MODE} {repository.blob(content)} {stage}" for stage, content in stages if content is not None
            ]
    return Progress(
        changes=plan.changes,
        target=plan.target,
        conflicts=tuple(conflict.path for conflict in plan.conflicts) if not plan.is_settled else (),
        rejects=plan.rejects,
        entries=repository.entries(_touched(plan)) if repository else {},
        unmerged=unmerged,
    )


def _touched(plan: Plan) -> list[PurePosixPath]:
    """Files that are written, and those that are only marked as unmerged."""
    return list(
        dict.fromkeys([*(change.path for change in plan.changes.changes), *(path for path, _ in plan.unmerged)])
    )


def _finish(found: Progress, repository: Repository | None) -> None:
    """Stage what was written; without conflicts that is all."""
    root = found.changes.root
    if repository:
        paths = [change.path for change in found.changes.changes if change.path not in found.rejects]
        repository.stage(
            [path for path in paths if str(path) not in found.unmerged], found.unmerged, progress.folder(root)
        )
    if found.conflicts:
        progress.write(replace(found, written=True))
    else:
        progress.clear(root)


def _remaining(found: Progress) -> ChangeSet:
    """What an update that was killed has still to write."""
    root = found.changes.root
    remaining = []
    for change in found.changes.changes:
        now = _read(root / change.path)
        if now == change.before:
            remaining.append(change)
        elif now != change.after and change.path not in found.conflicts:
            raise UsageError(
                f"{change.path} was edited after the update was killed",
                expected="expected it as the update found it, or as the update leaves it",
                hint="undo the edit, or take the update back, which keeps the edit: tilewright update --abort",
            )
    return ChangeSet(root=root, changes=tuple(remaining))


def _refuse_if_undone(found: Progress) -> None:
    """An update that `git reset --hard` took back is not complete."""
    root = found.changes.root
    if found.changes and all(_read(root / change.path) == change.before for change in found.changes.changes):
        raise UsageError(
            "every file is as it was before the update",
            expected="expected the files as the update and you have left them",
            hint="forget the update: tilewright update --abort",
        )


def _refuse_open_conflicts(found: Progress) -> None:
    root = found.changes.root
    open_ = [path for path in found.conflicts if has_markers(_read(root / path) or b"")]
    open_ += [path for path in found.rejects if (root / path).exists()]
    if open_:
        raise UsageError(
            f"not settled: {_listed(open_)}",
            expected="expected no `<<<<<<< owner` in these files, and no .rej file",
            hint="edit them (and remove the .rej files), then run this again; or tilewright update --abort",
        )


def _listed(paths: Iterable[PurePosixPath]) -> str:
    names = list(map(str, paths))
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _free_name(path: PurePosixPath, root: Path) -> PurePosixPath:
    """A name beside the file that nobody has."""
    number = 0
    while True:
        name = path.with_name(f"{path.name}.edited" + (f".{number}" if number else ""))
        if not (root / name).exists():
            return name
        number += 1


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
