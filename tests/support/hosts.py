"""Throw-away host repositories for tests."""

import shutil
from pathlib import Path
from pathlib import PurePosixPath

from tilewright.model.host import Host
from tilewright.model.operator import Operator

_TINY = Path(__file__).parent / "tiny_host"


def tiny_host(root: Path) -> Host:
    """A standalone host with one hand-written operator, `scale_add`, that has a backward."""
    shutil.copytree(_TINY, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    return Host(root=root, layout="standalone", package="tiny_ops")


def scale_add(root: Path) -> Operator:
    """The operator of the tiny host, built below `root`."""
    return Operator(
        name="scale_add",
        function="scale_add",
        host=tiny_host(root),
        stub=PurePosixPath("tiny_ops/scale_add/interface.py"),
        kernel=PurePosixPath("tiny_ops/scale_add/cutile.py"),
        test=PurePosixPath("tests/ops/test_scale_add.py"),
        benchmark=PurePosixPath("tests/benchmark/bench_scale_add.py"),
    )


def edit(operator: Operator, relative: PurePosixPath, old: str, new: str) -> None:
    """Replace text in one of the operator's files; the old text must be there."""
    path = operator.path(relative)
    text = path.read_text()
    assert old in text, f"{relative} has no {old!r}"
    path.write_text(text.replace(old, new))
