import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.tilegym_checkout import pristine_tilegym_checkout

from .sandbox import check_out

__all__ = ["pristine_tilegym_checkout"]


@pytest.fixture(scope="session")
def pristine_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of this repository that all pages share and none may change."""
    folder = tmp_path_factory.mktemp("checkout") / "tilewright"
    check_out(folder, published=tmp_path_factory.mktemp("published") / "tilewright")
    return folder


@pytest.fixture
def lay_out(pristine_checkout: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[list[str]], Path]:
    """Make the folder that the commands of a page run in: with TileGym beside this repository where they name it."""

    def copy(commands: list[str]) -> Path:
        shutil.copytree(pristine_checkout, tmp_path / "tilewright", symlinks=True)
        if any("TileGym" in command for command in commands):
            checkout = request.getfixturevalue("pristine_tilegym_checkout")
            shutil.copytree(checkout, tmp_path / "TileGym", symlinks=True)
        return tmp_path

    return copy
