from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.tilegym_checkout import pristine_tilegym_checkout
from tests.support.tilegym_checkout import tilegym_checkout
from tilewright.cli.app import app

__all__ = ["pristine_tilegym_checkout", "tilegym_checkout"]


@pytest.fixture
def tilewright() -> Callable:
    """Run a command in this process; returns exit code, stdout and stderr."""

    def run(*arguments: str):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder
