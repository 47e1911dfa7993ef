"""Keep the shared files of a TileGym checkout in step with the operators that an update changes."""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pathlib import PurePosixPath

from tilewright.codemod import Placement
from tilewright.codemod import discover
from tilewright.codemod import register
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange

PACKAGE = PurePosixPath("src/tilegym")
OPS = PACKAGE / "ops/ops.py"
SHARED = (OPS, PACKAGE / "ops/cutile/__init__.py")


@dataclass(frozen=True, kw_only=True)
class Registered:
    """The dispatch stub of one operator in the old and the new version of the template."""

    op: str
    placement: Placement
    old: str
    new: str


def plan_registration(
    root: Path, operators: Sequence[Registered], files: Sequence[FileChange]
) -> tuple[ChangeSet, tuple[str, ...]]:
    """What the shared files lack once `files` are in place, and notes on stubs that their owner has edited.

    Raises:
        RegistrationError: A shared file does not have the shape that is known.
    """
    before = {path: (root / path).read_bytes() for path in SHARED}
    text, notes = before[OPS].decode(), []
    for operator in operators:
        if operator.old == operator.new:
            continue
        if text.count(operator.old.strip()) == 1:
            text = text.replace(operator.old.strip(), operator.new.strip())
        elif operator.new.strip() not in text:
            notes.append(
                f"{OPS}: the stub of {operator.op} was edited, and the template changed it: see tilewright verify"
            )
    after = {**before, OPS: text.encode()}
    missing = _missing(root, operators)
    if missing:
        after = _registered(root, missing, files, after)
    changes = tuple(
        FileChange(path=path, before=before[path], after=after[path]) for path in SHARED if before[path] != after[path]
    )
    return ChangeSet(root=root, changes=changes), tuple(notes)


def _missing(root: Path, operators: Sequence[Registered]) -> list[Registered]:
    found = {each.name: each for each in discover(root, str(PACKAGE))}

    def is_complete(op: str) -> bool:
        known = found.get(op)
        kernel = known.implementation("cutile") if known else None
        return known is not None and known.stub is not None and kernel is not None and kernel.loaded

    return [operator for operator in operators if not is_complete(operator.op)]


def _registered(
    root: Path, operators: Sequence[Registered], files: Sequence[FileChange], shared: dict[PurePosixPath, bytes]
) -> dict[PurePosixPath, bytes]:
    """The shared files after one registration upon the other, made in a copy that has the new kernels."""
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        copy = Path(name)
        shutil.copytree(root / PACKAGE, copy / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
        written = [(change.path, change.after) for change in files if change.path.is_relative_to(PACKAGE)]
        for path, content in [*written, *shared.items()]:
            if content is None:
                (copy / path).unlink(missing_ok=True)
            else:
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                (copy / path).write_bytes(content)
        for operator in operators:
            for change in register(copy, operator.op, stub=operator.new, placement=operator.placement).changes:
                assert change.after is not None
                (copy / change.path).write_bytes(change.after)
        return {path: (copy / path).read_bytes() for path in shared}
