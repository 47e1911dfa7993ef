"""Steps of an operator that its owner has taken over: no update changes their files any more."""

from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from pathlib import PurePosixPath
from typing import Any

import yaml

from tilewright.config import read_answers
from tilewright.config.versions import recorded_version
from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange
from tilewright.model.host import Host
from tilewright.render import Batch
from tilewright.render import Source

DETACHED = PurePosixPath(".tilewright", "detached")
IN_SHARED_FILES = frozenset({"stub", "registration"})  # of a TileGym checkout
# In the order of the steps; the stub of a TileGym checkout is in `ops.py`.
_NAMES = {"interface.py": "stub", "cutile.py": "kernel", "__init__.py": "registration"}


def step_of(path: PurePosixPath, op: str) -> str | None:
    """The step that a file of an operator is, or None for its record."""
    if path.parts[0] == "tests":
        return "benchmark" if path.name.startswith("bench_") else "tests"
    if path.name == f"{op}.py":
        return "kernel"
    return _NAMES.get(path.name)


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a step was made from when its owner took it over."""

    version: str  # of the template
    answers: Mapping[str, Any] | None  # None: those of the operator's record; all that tilewright 0.2 knew


def read_detached(op: str, root: Path) -> dict[str, Made]:
    """The detached steps, each with what it was made from.

    Raises:
        UsageError: The file that says so is not one.
    """
    path = root / DETACHED / f"{op}.yml"
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, UnicodeDecodeError):
        content = None
    if not isinstance(content, dict) or not all(map(_is_step, content.items())):
        raise UsageError(
            f"{path} is not a mapping of steps to what they were made from",
            expected="expected lines such as `kernel: v0.1.0`, or `kernel:` with `_commit` and answers below it",
            hint="take it from the history, or remove it to have every file updated again",
        )
    return {step: _made(value) for step, value in content.items()}


def plan_detach(op: str, steps: Iterable[str], host: Host, source: Source) -> ChangeSet:
    """The record that the steps are their owner's.

    Raises:
        UsageError: A step has no file of its own.
    """
    root, answers = host.root, read_answers(op, host.root)
    version = recorded_version(op, answers)
    given = {key: value for key, value in answers.items() if not key.startswith("_")}
    rendering = Batch(source.template).render(given, root, source="", recorded=True)
    own = (file.path for file in rendering.files if not file.shared)
    known = {step for step in (step_of(path, op) for path in own) if step}
    if host.layout == "tilegym":
        known |= IN_SHARED_FILES
    detached = read_detached(op, root)
    for step in steps:
        if step not in known:
            raise UsageError(
                f"{step!r} is no step of {op} with a file that an update changes",
                expected=f"expected one of {', '.join(sorted(known))}",
                hint="a step that does not apply is recorded with: tilewright new OP --skip STEP=REASON",
            )
        detached.setdefault(step, Made(version=version, answers=given))
    return record_detached(op, detached, root)


def record_detached(op: str, detached: Mapping[str, Made], root: Path) -> ChangeSet:
    """The file that says which steps are detached; without any there is none."""
    path = DETACHED / f"{op}.yml"
    before = (root / path).read_bytes() if (root / path).is_file() else None
    after = None
    if detached:
        lines = f"# Steps of {op} that `tilewright update` leaves alone, and what each was made from.\n"
        content = {step: _written(made) for step, made in detached.items()}
        after = (lines + yaml.safe_dump(content, sort_keys=True)).encode()
    changes = () if after == before else (FileChange(path=path, before=before, after=after),)
    return ChangeSet(root=root, changes=changes)


def _is_step(item: tuple[Any, Any]) -> bool:
    step, made = item
    return isinstance(step, str) and isinstance(made.get("_commit") if isinstance(made, dict) else made, str)


def _made(value: Any) -> Made:
    if isinstance(value, str):
        return Made(version=value, answers=None)
    return Made(version=value["_commit"], answers={key: each for key, each in value.items() if key != "_commit"})


def _written(made: Made) -> Any:
    return made.version if made.answers is None else {"_commit": made.version, **made.answers}
