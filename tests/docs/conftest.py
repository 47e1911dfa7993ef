import shutil
from pathlib import Path

import pytest

from .sandbox import build_workplace


@pytest.fixture(scope="session")
def pristine_workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the pages describe it, that all tests share and none may change."""
    folder = tmp_path_factory.mktemp("workplace")
    build_workplace(folder, tmp_path_factory.mktemp("published") / "tilewright")
    return folder


@pytest.fixture
def workplace(pristine_workplace: Path, tmp_path: Path) -> Path:
    """A folder of its own for one page."""
    return shutil.copytree(pristine_workplace, tmp_path / "work", symlinks=True)
