"""An operator whose kernel file is plain Python, and child processes that are acted out."""

import functools
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import tune_child
from tests.support.hosts import scale_add
from tilewright.tune.laboratory import Laboratory
from tilewright.tune.run import Task
from tilewright.tune.run import tune

KERNEL = '''"""A kernel file."""

from dataclasses import dataclass


@dataclass(frozen=True)
class _Config:
    tile: int
    depth: int = 16
    most: int = 2**31


# By bytes of an element and major compute capability.
CONFIGS = {
    2: {8: (_Config(16),), 9: (_Config(16, most=8), _Config(32, 64))},
}


def launched(configs, size):
    return next(config for config in configs[2][9] if size[0] <= config.most)
'''
TUNE = """
table: CONFIGS
by_itemsize: true
fields:
  tile: [16, 32, 64, 128, 256, 512]
  depth: [16, 32, 64]
"""


def numbers(path):
    return [tuple(map(int, line.split())) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Tunes an operator; `timed` are tile, depth, size and effort of each timing, `compiled` the tiles of entries."""
    operator = scale_add(tmp_path / "host")
    operator.path(operator.kernel).write_text(KERNEL)
    (tmp_path / "host/.tilewright/ops").mkdir(parents=True, exist_ok=True)
    (tmp_path / "host/.tilewright/ops/scale_add.yml").write_text("op: scale_add\nfamily: made_up\n")
    (tmp_path / "partials/made_up").mkdir(parents=True)
    (tmp_path / "partials/made_up/tune.yml").write_text(TUNE)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TIMED", str(tmp_path / "timed"))
    monkeypatch.setenv("COMPILED", str(tmp_path / "compiled"))

    def run(act: str = "", patience: float = 30.0, **task):
        monkeypatch.setenv("ACT", act)
        laboratory = functools.partial(Laboratory, command=(tune_child.__file__,), patience=patience)
        wanted = {"jobs": 2, "dtypes": ["float16"], **task}
        return tune(Task(operator=operator, partials=tmp_path / "partials", **wanted), laboratory)

    def timed():
        return numbers(tmp_path / "timed")

    def compiled():
        return numbers(tmp_path / "compiled")

    return SimpleNamespace(run=run, timed=timed, compiled=compiled, operator=operator, cache=tmp_path / "cache")
