"""Move one operator from its version of the template to another: render it twice and lay both beside its files."""

import os
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from tilewright.config import ANSWERS
from tilewright.config.versions import is_same
from tilewright.config.versions import recorded_version
from tilewright.errors import UsageError
from tilewright.model.host import Host
from tilewright.render import Batch
from tilewright.render import RenderedFile
from tilewright.render import Rendering
from tilewright.render.answers import refuse_unused
from tilewright.update.detached import IN_SHARED_FILES
from tilewright.update.detached import Made
from tilewright.update.detached import read_detached
from tilewright.update.detached import step_of
from tilewright.update.migrations import migrate
from tilewright.update.outcome import OperatorUpdate
from tilewright.update.registration import Registered
from tilewright.update.sides import Sides
from tilewright.update.templates import Templates


@dataclass(frozen=True, kw_only=True)
class Moved:
    """One operator that is behind, as both versions of the template make it."""

    update: OperatorUpdate
    sides: tuple[Sides, ...]
    registered: Registered | None  # in a TileGym checkout, unless its owner has taken that over


@dataclass(frozen=True, kw_only=True)
class _Version:
    """A template and what it makes of the operator."""

    batch: Batch
    rendering: Rendering
    version: str


def move(
    host: Host, templates: Templates, op: str, answers: Mapping[str, Any], target: str, changed: Mapping[str, Any]
) -> Moved:
    """Render an operator by its record, and by the version `target` with the answers that are `changed`.

    Raises:
        UsageError: The recorded version does not accept the recorded answers, or `target` the changed ones; or a link
            is in the place of a file.
        MissingError: A template is neither in the package nor where the operator came from.
        RenderError: A template fails.
    """
    version, origin = recorded_version(op, dict(answers)), _origin(answers)
    _refuse_other_place(host, op, answers)
    given = _given(answers)
    old = _as_made(host, templates, op, version, given, origin)
    batch = templates.batch(target, origin, host.root)
    migrated = migrate(given, batch.folder, old=version, new=target)
    with naming(op):
        rendering = batch.render(migrated, host.root, source=origin, recorded=True, changed=changed)
        refuse_unused(changed, rendering.answers)
    new = _Version(batch=batch, rendering=rendering, version=_as_recorded(rendering, op, target))
    detached = read_detached(op, host.root)
    is_registered = host.layout == "tilegym" and not IN_SHARED_FILES & detached.keys()
    return Moved(
        update=OperatorUpdate(name=op, old=version, new=target, answers=changed, detached=tuple(detached)),
        sides=tuple(_sides(host, op, old, new, lambda step: step not in detached)),
        registered=_registered(host, op, old, new, origin) if is_registered else None,
    )


def catch_up(
    host: Host, templates: Templates, op: str, answers: Mapping[str, Any], step: str, detached: Mapping[str, Made]
) -> Moved:
    """Render one detached step as it was made, and by the operator's record; the other `detached` steps stay so.

    Raises:
        UsageError: The record cannot be used, or a link is in the place of a file.
        MissingError: A template is neither in the package nor where the operator came from.
    """
    made, version, origin = detached[step], recorded_version(op, dict(answers)), _origin(answers)
    _refuse_other_place(host, op, answers)
    given = _given(answers)
    if made.answers is None:
        batch = templates.batch(made.version, origin, host.root)
        rendering = batch.render(given, host.root, source=origin, recorded=True)
        old = _Version(batch=batch, rendering=rendering, version=made.version)
    else:
        # The package may have been renamed since: both are made where the files are now.
        where = {key: value for key, value in given.items() if key == "package"}
        old = _as_made(host, templates, op, made.version, {**made.answers, **where}, origin)
    new = _as_made(host, templates, op, version, given, origin)
    others = tuple(other for other in detached if other != step)
    is_registered = host.layout == "tilegym" and step in IN_SHARED_FILES and not IN_SHARED_FILES & set(others)
    return Moved(
        update=OperatorUpdate(name=op, old=made.version, new=version, detached=others),
        sides=tuple(_sides(host, op, old, new, lambda each: each == step)),
        registered=_registered(host, op, old, new, origin) if is_registered else None,
    )


def _refuse_other_place(host: Host, op: str, answers: Mapping[str, Any]) -> None:
    """Where the package was renamed, every file of the operator would pass for removed."""
    for key, value in (("layout", host.layout), ("package", host.package)):
        if answers.get(key, value) != value:
            path = ANSWERS / f"{op}.yml"
            raise UsageError(
                f"{path} has the {key} {answers[key]}, and the repository {value}",
                expected="expected the same, since that is where the files are looked for",
                hint=f"write `{key}: {value}` there, commit, and run the command again",
            )


def _as_made(
    host: Host, templates: Templates, op: str, version: str, answers: Mapping[str, Any], origin: str
) -> _Version:
    batch = templates.batch(version, origin, host.root)
    with _in_record(op, version):
        rendering = batch.render(answers, host.root, source=origin, recorded=False)
    return _Version(batch=batch, rendering=rendering, version=version)


def _origin(answers: Mapping[str, Any]) -> str:
    return str(answers.get("_src_path", ""))


def _given(answers: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answers.items() if not key.startswith("_")}


@contextmanager
def naming(op: str) -> Iterator[None]:
    """Of several operators, say which one an error is about."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{op}: {error.what}", expected=error.expected, hint=error.hint) from error


@contextmanager
def _in_record(op: str, version: str) -> Iterator[None]:
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


def _sides(
    host: Host, op: str, old: _Version, new: _Version, is_wanted: Callable[[str | None], bool]
) -> Iterator[Sides]:
    """The files of the wanted steps that the operator owns, and those of the host that the new version adds."""
    before, after = _by_path(op, old), _by_path(op, new)
    for path in filter(lambda path: is_wanted(step_of(path, op)), {**before, **after}):
        base, template = before.get(path), after.get(path)
        target = host.root / path
        if template is None and base is not None and (base.shared or new.batch.is_excluded(path)):
            continue  # the template gives up a file that it does not own any more
        if template is not None and template.shared and (base is not None or os.path.lexists(target)):
            continue  # written once, then its owner's, also if he has removed it
        if target.is_symlink() or (os.path.lexists(target) and not target.is_file()):
            raise UsageError(
                f"{target} is a link or a folder",
                expected="expected a file, as the template makes it",
                hint=f"put the file there, or keep its step to yourself: tilewright detach {op} STEP",
            )
        yield Sides(
            path=path,
            base=base.content if base else None,
            owner=target.read_bytes() if target.exists() else None,
            template=template.content if template else None,
        )


def _as_recorded(rendering: Rendering, op: str, version: str) -> str:
    """The version in the words of the template, which names its commit where there are no tags, if it is the same."""
    [record] = (file for file in rendering.files if file.path == PurePosixPath(ANSWERS, f"{op}.yml"))
    words = recorded_version(op, yaml.safe_load(record.content))
    return words if is_same(words, version) else version


def _by_path(op: str, made: _Version) -> dict[PurePosixPath, RenderedFile]:
    """The files; the record names the version that was asked for, whatever the template calls itself."""
    record = PurePosixPath(ANSWERS, f"{op}.yml")
    files = {file.path: file for file in made.rendering.files}
    commit = f"_commit: {made.version}\n".encode()
    lines = files[record].content.splitlines(keepends=True)
    content = b"".join(commit if line.startswith(b"_commit:") else line for line in lines)
    return {**files, record: RenderedFile(path=record, content=content, shared=False)}


def _registered(host: Host, op: str, old: _Version, new: _Version, origin: str) -> Registered:
    stubs = []
    for made in (old, new):
        answers = {**made.rendering.answers, "layout": "stub"}
        [stub] = made.batch.render(answers, host.root, source=origin, recorded=False).files
        stubs.append(stub.content.decode())
    return Registered(op=op, placement=new.rendering.answers["placement"], old=stubs[0], new=stubs[1])
