"""Plan an update: render every operator at its version and at the new one, and merge all of them at once."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from tilewright.config import ANSWERS
from tilewright.config import read_answers
from tilewright.config.versions import is_newer
from tilewright.config.versions import is_same
from tilewright.config.versions import recorded_version
from tilewright.config.versions import tag
from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange
from tilewright.model.host import Host
from tilewright.render import Source
from tilewright.render import complete_changes
from tilewright.update.detached import read_detached
from tilewright.update.detached import record_detached
from tilewright.update.hunks import rejected
from tilewright.update.hunks import resolved
from tilewright.update.hunks import with_markers
from tilewright.update.merge import Merged
from tilewright.update.merge import merge
from tilewright.update.moving import Moved
from tilewright.update.moving import catch_up
from tilewright.update.moving import move
from tilewright.update.moving import naming
from tilewright.update.outcome import Conflict
from tilewright.update.outcome import Plan
from tilewright.update.outcome import Strategy
from tilewright.update.registration import plan_registration
from tilewright.update.templates import Templates

Progress = Callable[[int, int], None]


def plan_update(
    host: Host,
    source: Source,
    ops: Sequence[str],
    *,
    to: str | None = None,
    changed: Mapping[str, Any] = MappingProxyType({}),
    strategy: Strategy = "inline",
    progress: Progress | None = None,
) -> Plan:
    """What an update of these operators to the version `to` of the template, or to the installed one, changes.

    Answers that are `changed` take the place of recorded ones.

    Raises:
        UsageError: An operator was made from a newer template, its record cannot be used, or a changed answer cannot.
        MissingError: A template is neither in the package nor where the operator came from.
        RenderError: A template fails.
    """
    with Templates(source) as templates:
        target = tag(to) if to else templates.own_version
        recorded = {op: read_answers(op, host.root) for op in ops}
        versions = {op: recorded_version(op, answers) for op, answers in recorded.items()}
        _refuse_newer(versions, target, is_asked=bool(to))
        answers = {op: _completed(source, changed, op, recorded[op]) for op in ops}
        behind = [op for op in ops if not is_same(versions[op], target) or _differ(answers[op], recorded[op])]
        moved = []
        for done, op in enumerate(behind):
            if progress:
                progress(done, len(behind))
            moved.append(move(host, templates, op, recorded[op], target, answers[op]))
    title = f"Update to template {target}"
    if moved and all(is_same(each.update.old, target) for each in moved):
        title = f"Change answers of {', '.join(behind[:3]) if len(behind) <= 3 else 'operators'}"
    plan = _plan(host, target, moved, tuple(op for op in ops if op not in behind), strategy, title=title)
    return replace(plan, notes=(*_notes_on_gone_files(moved), *plan.notes))


def plan_catch_up(host: Host, source: Source, op: str, steps: Sequence[str]) -> Plan:
    """What changes where detached steps of an operator are given back to the template, which may have moved on.

    Raises:
        UsageError: A step is not detached, or the operator's record cannot be used.
        MissingError: A template is neither in the package nor where the operator came from.
        RenderError: A template fails.
    """
    answers, detached = read_answers(op, host.root), read_detached(op, host.root)
    others = dict(detached)
    moved = []
    with Templates(source) as templates:
        for step in dict.fromkeys(steps):
            if step not in detached:
                raise UsageError(
                    f"{step!r} of {op} is not detached",
                    expected=f"expected one of {', '.join(detached)}" if detached else "expected a detached step",
                    hint="to see what is: tilewright status",
                )
            del others[step]
            moved.append(catch_up(host, templates, op, answers, step, {**others, step: detached[step]}))
    title = f"Have {' and '.join(dict.fromkeys(steps))} of {op} updated again"
    plan = _plan(host, recorded_version(op, answers), moved, (), "inline", title=title)
    return replace(
        plan, operators=(moved[-1].update,), changes=plan.changes.merged(record_detached(op, others, host.root))
    )


def recorded_operators(host: Host) -> list[str]:
    """The operators that were made with the template, by name."""
    return sorted(path.stem for path in (host.root / ANSWERS).glob("*.yml"))


def _completed(source: Source, changed: Mapping[str, Any], op: str, recorded: Mapping[str, Any]) -> dict[str, Any]:
    with naming(op):
        return complete_changes(source, changed, recorded) if changed else {}


def _differ(changed: Mapping[str, Any], recorded: Mapping[str, Any]) -> bool:
    return any(recorded.get(key) != value for key, value in changed.items())


def _refuse_newer(versions: Mapping[str, str], target: str, *, is_asked: bool) -> None:
    newer = [op for op, version in versions.items() if is_newer(version, target)]
    if newer:
        newest = tag(versions[newer[0]])
        raise UsageError(
            f"{', '.join(newer[:3])}: made from the template {newest}, which is newer than {target}",
            expected="expected operators of that template or an older one; there is no way back",
            hint=f"leave out --to, or give it {newest} or a newer one"
            if is_asked
            else "install a newer tilewright: pip install --upgrade tilewright",
        )


def _plan(
    host: Host, target: str, moved: Sequence[Moved], current: tuple[str, ...], how: Strategy, *, title: str
) -> Plan:
    files = {sides.path: sides for each in moved for sides in each.sides}
    changes: list[FileChange] = []
    conflicts: list[Conflict] = []
    rejects: list[PurePosixPath] = []
    unmerged: list[tuple[PurePosixPath, tuple[bytes | None, bytes | None, bytes | None]]] = []
    for each in merge(list(files.values())):
        if each.hunks and each.path.parent == PurePosixPath(ANSWERS):
            # A record follows from the answers, which the new one has; markers would make it useless.
            after = each.sides.template
        elif each.hunks:
            after = _settled(each, how)
            conflicts.append(Conflict(path=each.path, hunks=each.hunks))
            if how == "rej":
                reject = each.path.with_name(f"{each.path.name}.rej")
                rejects.append(reject)
                patch = rejected(str(each.path), each.parts or ())
                changes.append(FileChange(path=reject, before=_read(host, reject), after=patch))
            elif how == "inline":
                unmerged.append((each.path, (each.sides.base, each.sides.owner, each.sides.template)))
        else:
            after = None if each.parts is None else resolved(each.parts, "owner")
        before = _read(host, each.path)
        if before != after:
            changes.append(FileChange(path=each.path, before=before, after=after))
    notes: tuple[str, ...] = ()
    registered = [each.registered for each in moved if each.registered]
    if registered:
        registration, notes = plan_registration(host.root, registered, changes)
        changes += registration.changes
    return Plan(
        target=target,
        title=title,
        operators=tuple(each.update for each in moved),
        current=current,
        changes=ChangeSet(root=host.root, changes=tuple(changes)),
        conflicts=tuple(conflicts),
        rejects=tuple(rejects),
        unmerged=tuple(unmerged),
        gone=tuple(path for path, sides in files.items() if sides.owner is None and sides.base is not None),
        notes=notes,
    )


def _notes_on_gone_files(moved: Iterable[Moved]) -> Iterator[str]:
    for each in moved:
        code = [sides for sides in each.sides if sides.base is not None and sides.path.suffix == ".py"]
        if code and all(sides.owner is None for sides in code):
            op = each.update.name
            yield f"{op}: its files are gone, and no update brings them back; to forget it: tilewright remove {op}"


def _settled(merged: Merged, how: Strategy) -> bytes | None:
    parts = merged.parts or ()
    if how == "inline":
        return with_markers(parts)
    return resolved(parts, "owner" if how == "ours" else "template")


def _read(host: Host, path: PurePosixPath) -> bytes | None:
    target = host.root / path
    return target.read_bytes() if target.is_file() else None
