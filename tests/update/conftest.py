"""A template with two releases, a host with operators of the first, and commands run in it."""

import shutil
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support import releases
from tilewright.cli.app import app
from tilewright.render import Batch
from tilewright.render import Source
from tilewright.update.templates import Templates

OPERATORS = (
    {"op": "swish", "formula": "x * sigmoid(x)", "package": "my_ops"},
    {"op": "total", "family": "reduction", "package": "my_ops"},
)


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Source, Path]:
    """The template with a newer release, and a host of two operators that are behind; nobody may change them."""
    folder = tmp_path_factory.mktemp("released")
    source = releases.check_out_template(folder / "template")
    releases.make_host(folder / "host", source, *OPERATORS)
    releases.release(
        source,
        releases.NEXT,
        {
            releases.KERNEL: ('"""cuTile backend of', '"""The cuTile kernel of'),
            releases.INTERFACE: ("import torch", "import torch  # newer"),
        },
    )
    return source, folder / "host"


@pytest.fixture(scope="session")
def remembered() -> Iterator[Callable]:
    """`Templates.batch` as it is, but with what it has read and compiled kept from test to test."""
    batches: dict[tuple[Path, str, str], Batch] = {}
    original = Templates.batch
    with ExitStack() as unpacked:

        def batch(self: Templates, version: str, origin: str, host: Path) -> Batch:
            key = (self._source.root, version, origin)
            if key not in batches:
                batches[key] = original(self, version, origin, host)
                unpacked.push(self._cleanup.pop_all())
            return batches[key]

        yield batch


@pytest.fixture
def host(pristine: tuple[Source, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remembered: Callable) -> Path:
    """A host of one's own, as the current folder; the installed template is the newer one."""
    source, made = pristine
    root = shutil.copytree(made, tmp_path / "host", symlinks=True)
    monkeypatch.chdir(root)
    monkeypatch.setattr("tilewright.render.locate", lambda: source)
    monkeypatch.setattr(Templates, "batch", remembered)
    return root


@pytest.fixture
def tilewright() -> Callable:
    """Run a command in this process; returns exit code, stdout and stderr."""

    def run(*arguments: str):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run
