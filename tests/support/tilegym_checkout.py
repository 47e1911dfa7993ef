"""A TileGym checkout for tests: the installed package as `src/tilegym`, and stand-ins for the files around it.

The wheel has no tests and no settings; those in `tilegym_host` have the interfaces of the real ones.
"""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

_AROUND = Path(__file__).parent / "tilegym_host"
_COMPILED = shutil.ignore_patterns("__pycache__", "*.pyc", ".ruff_cache", ".pytest_cache")


def build_tilegym_checkout(target: Path) -> Path:
    """Make `target` a checkout: a git repository with one commit and a clean working tree."""
    spec = importlib.util.find_spec("tilegym")  # finds the package without importing it, torch and all
    if spec is None or spec.submodule_search_locations is None:
        pytest.skip("the package tilegym is not installed")
    shutil.copytree(_AROUND, target, ignore=_COMPILED)
    shutil.copytree(spec.submodule_search_locations[0], target / "src" / "tilegym", ignore=_COMPILED)
    git(target, "init", "--quiet", "--initial-branch=main")
    git(target, "config", "user.name", "TileGym")
    git(target, "config", "user.email", "tilegym@example.com")
    git(target, "config", "core.autocrlf", "false")
    git(target, "add", "--all")
    git(target, "commit", "--quiet", "--message=Import TileGym")
    return target


def git(checkout: Path, *arguments: str) -> str:
    """Run git in the checkout."""
    return subprocess.run(["git", *arguments], cwd=checkout, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="session")
def pristine_tilegym_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout that all tests share and none may change."""
    return build_tilegym_checkout(tmp_path_factory.mktemp("tilegym") / "TileGym")


@pytest.fixture
def tilegym_checkout(pristine_tilegym_checkout: Path, tmp_path: Path) -> Path:
    """A checkout of its own for one test."""
    return shutil.copytree(pristine_tilegym_checkout, tmp_path / "TileGym", symlinks=True)
