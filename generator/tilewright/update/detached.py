"""Steps of an operator that its owner has taken over: no update changes their files any more."""

from collections.abc import Iterable
from pathlib import Path
from pathlib import PurePosixPath
from typing import Any

from tilewright.config import read_answers
from tilewright.config.versions import recorded_version
from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange
from tilewright.model.host import Host
from tilewright.render import Batch
from tilewright.render import Source

DETACHED = PurePosixPath(".tilewright", "detached")
# In the order of the steps; the stub of a TileGym checkout is in `ops.py`.
_NAMES = {"interface.py": "stub", "cutile.py": "kernel", "__init__.py": "registration"}


def step_of(path: PurePosixPath, op: str) -> str | None:
    """The step that a file of an operator is, or None for its record."""
    if path.parts[0] == "tests":
        return "benchmark" if path.name.startswith("bench_") else "tests"
    if path.name == f"{op}.py":
        return "kernel"
    return _NAMES.get(path.name)


def read_detached(op: str, root: Path) -> dict[str, str]:
    """The detached steps, each with the version of the template that it was at.

    Raises:
        UsageError: The file that says so is not one.
    """
    import yaml

    path = root / DETACHED / f"{op}.yml"
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, UnicodeDecodeError):
        content = None
    if not isinstance(content, dict) or not all(isinstance(step, str) for step in content):
        raise UsageError(
            f"{path} is not a mapping of steps to versions",
            expected="expected lines such as `kernel: v0.1.0`",
            hint="mend it, or remove it to have every file updated again",
        )
    return {step: str(version) for step, version in content.items()}


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
        known |= {"stub", "registration"}  # in files of all operators
    detached = read_detached(op, root)
    for step in steps:
        if step not in known:
            raise UsageError(
                f"{step!r} is no step of {op} with a file that an update changes",
                expected=f"expected one of {', '.join(sorted(known))}",
                hint="a step that does not apply is recorded with: tilewright new OP --skip STEP=REASON",
            )
        detached.setdefault(step, version)
    path = DETACHED / f"{op}.yml"
    before = (root / path).read_bytes() if (root / path).is_file() else None
    lines = [f"# Steps of {op} that `tilewright update` leaves alone, and the template that each was at.\n"]
    lines += [f"{step}: {version}\n" for step, version in sorted(detached.items())]
    after = "".join(lines).encode()
    changes = () if after == before else (FileChange(path=path, before=before, after=after),)
    return ChangeSet(root=root, changes=changes)
