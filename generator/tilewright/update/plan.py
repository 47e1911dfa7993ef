"""Plan an update: render every operator at its version and at the new one, and merge all of them at once."""

import os
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tilewright.config import ANSWERS
from tilewright.config import read_answers
from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange
from tilewright.model.host import Host
from tilewright.render import Rendering
from tilewright.render import Source
from tilewright.update.detached import read_detached
from tilewright.update.detached import step_of
from tilewright.update.hunks import rejected
from tilewright.update.hunks import resolved
from tilewright.update.hunks import with_markers
from tilewright.update.merge import Merged
from tilewright.update.merge import merge
from tilewright.update.migrations import migrate
from tilewright.update.outcome import Conflict
from tilewright.update.outcome import OperatorUpdate
from tilewright.update.outcome import Plan
from tilewright.update.outcome import Strategy
from tilewright.update.registration import Registered
from tilewright.update.registration import plan_registration
from tilewright.update.sides import Sides
from tilewright.update.templates import Templates
from tilewright.update.versions import is_newer
from tilewright.update.versions import is_same
from tilewright.update.versions import recorded_version
from tilewright.update.versions import tag

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class _Moved:
    """One operator that is behind, rendered twice."""

    update: OperatorUpdate
    sides: tuple[Sides, ...]
    registered: Registered | None


def plan_update(
    host: Host,
    source: Source,
    ops: Sequence[str],
    *,
    to: str | None = None,
    strategy: Strategy = "inline",
    progress: Progress | None = None,
) -> Plan:
    """What an update of these operators to the version `to` of the template, or to the installed one, changes.

    Raises:
        UsageError: An operator was made from a newer template, or its record cannot be used.
        MissingError: A template is neither in the package nor where the operator came from.
        RenderError: A template fails.
    """
    with Templates(source) as templates:
        target = tag(to) if to else templates.own_version
        recorded = {op: read_answers(op, host.root) for op in ops}
        versions = {op: recorded_version(op, answers) for op, answers in recorded.items()}
        _refuse_newer(versions, target)
        behind = [op for op in ops if not is_same(versions[op], target)]
        moved = []
        for done, op in enumerate(behind):
            if progress:
                progress(done, len(behind))
            moved.append(_moved(host, templates, op, recorded[op], target))
    files: dict[PurePosixPath, Sides] = {}
    for each in moved:
        files |= {sides.path: sides for sides in each.sides}
    merged = merge(list(files.values()))
    return _plan(host, target, moved, tuple(op for op in ops if op not in behind), merged, strategy)


def recorded_operators(host: Host) -> list[str]:
    """The operators that were made with the template, by name."""
    return sorted(path.stem for path in (host.root / ANSWERS).glob("*.yml"))


def _refuse_newer(versions: Mapping[str, str], target: str) -> None:
    newer = [op for op, version in versions.items() if is_newer(version, target)]
    if newer:
        newest = versions[newer[0]]
        raise UsageError(
            f"{', '.join(newer[:3])}: made from the template {newest}, which is newer than {target}",
            expected="expected operators of that template or an older one; there is no way back",
            hint="install a newer tilewright: pip install --upgrade tilewright",
        )


def _moved(host: Host, templates: Templates, op: str, answers: Mapping[str, Any], target: str) -> _Moved:
    version, origin = recorded_version(op, dict(answers)), str(answers.get("_src_path", ""))
    given = {key: value for key, value in answers.items() if not key.startswith("_")}
    old_template = templates.batch(version, origin, host.root)
    new_template = templates.batch(target, origin, host.root)
    migrated = migrate(given, new_template.template.local_abspath, old=version, new=target)
    with _naming(op, version):
        old = old_template.render(given, host.root, source=origin, recorded=False)
    new = new_template.render(migrated, host.root, source=origin, recorded=True)
    detached = read_detached(op, host.root)
    registered = None
    if host.layout == "tilegym" and not {"stub", "registration"} & detached.keys():
        stubs = [
            batch.render({**rendering.answers, "layout": "stub"}, host.root, source=origin, recorded=False)
            for batch, rendering in ((old_template, old), (new_template, new))
        ]
        registered = Registered(
            op=op,
            placement=new.answers["placement"],
            old=stubs[0].files[0].content.decode(),
            new=stubs[1].files[0].content.decode(),
        )
    record = PurePosixPath(ANSWERS, f"{op}.yml")
    before = _with_version(_own(old), record, version)
    after = _with_version(_own(new), record, target)
    shared = {file.path: file.content for file in new.files if file.shared} if old.files else {}
    known = {file.path for file in old.files}
    after |= {path: content for path, content in shared.items() if path not in known}
    paths = [path for path in {**before, **after} if step_of(path, op) not in detached]
    return _Moved(
        update=OperatorUpdate(name=op, old=version, new=target, detached=tuple(detached)),
        sides=tuple(_sides(host, path, before.get(path), after.get(path), path in shared) for path in paths),
        registered=registered,
    )


@contextmanager
def _naming(op: str, version: str) -> Iterator[None]:
    """An answer that its own template does not accept was edited by hand; say where it is."""
    try:
        yield
    except UsageError as error:
        path = ANSWERS / f"{op}.yml"
        raise UsageError(
            f"{path}: {error.what}",
            expected=f"expected answers that the template {version} accepts",
            hint=f"mend it, or take it from the history: git checkout HEAD -- {path}",
        ) from error


def _own(rendering: Rendering) -> dict[PurePosixPath, bytes]:
    return {file.path: file.content for file in rendering.files if not file.shared}


def _with_version(files: dict[PurePosixPath, bytes], record: PurePosixPath, version: str) -> dict[PurePosixPath, bytes]:
    """The record names the version that was asked for, whatever the template calls itself."""
    lines = files[record].splitlines(keepends=True)
    lines = [f"_commit: {version}\n".encode() if line.startswith(b"_commit:") else line for line in lines]
    return {**files, record: b"".join(lines)}


def _sides(host: Host, path: PurePosixPath, base: bytes | None, template: bytes | None, shared: bool) -> Sides:
    target = host.root / path
    if target.is_symlink() or (os.path.lexists(target) and not target.is_file()):
        raise UsageError(
            f"{target} is a link or a folder",
            expected="expected a file, as the template makes it",
            hint="put the file there, or leave its step to yourself: tilewright detach OP STEP",
        )
    owner = target.read_bytes() if target.exists() else None
    if shared and owner is not None:  # written once, then its owner's
        template = base = owner
    return Sides(path=path, base=base, owner=owner, template=template)


def _plan(
    host: Host, target: str, moved: Sequence[_Moved], current: tuple[str, ...], merged: Iterable[Merged], how: Strategy
) -> Plan:
    changes: list[FileChange] = []
    conflicts: list[Conflict] = []
    rejects: list[PurePosixPath] = []
    unmerged: list[tuple[PurePosixPath, tuple[bytes | None, bytes | None, bytes | None]]] = []
    for each in merged:
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
        operators=tuple(each.update for each in moved),
        current=current,
        changes=ChangeSet(root=host.root, changes=tuple(changes)),
        conflicts=tuple(conflicts),
        rejects=tuple(rejects),
        unmerged=tuple(unmerged),
        notes=notes,
    )


def _settled(merged: Merged, how: Strategy) -> bytes | None:
    parts = merged.parts or ()
    if how == "inline":
        return with_markers(parts)
    return resolved(parts, "owner" if how == "ours" else "template")


def _read(host: Host, path: PurePosixPath) -> bytes | None:
    target = host.root / path
    return target.read_bytes() if target.is_file() else None
