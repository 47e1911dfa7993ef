"""A git checkout of this repository's template, and hosts rendered from it with copier alone."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tilewright.render import Batch
from tilewright.render import Rendering

ROOT = Path(__file__).parents[2]
# Renders what copier renders (tests/render/test_batch.py), and keeps what it has compiled.
BATCH = Batch(ROOT / "template")


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commit_all(folder: Path, message: str = "change") -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


def rendered(answers: dict[str, Any]) -> Rendering:
    """What the template of the working tree makes of some answers."""
    return BATCH.render(answers, Path("/nowhere"), source="", recorded=False)


def version() -> str:
    import tilewright

    return tilewright.__version__


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the template of the working tree, tagged as the current release."""
    folder = tmp_path / "tilewright"
    folder.mkdir()
    shutil.copy(ROOT / "copier.yml", folder)
    shutil.copytree(ROOT / "template", folder / "template")
    git(folder, "init", "-q")
    commit_all(folder)
    git(folder, "tag", f"v{version()}")
    return folder


@pytest.fixture
def release(checkout: Path) -> Callable[[str, str, str], None]:
    """Change the template by replacing a text in one of its files, and tag it as the release 9.0.0."""

    def make(file: str, old: str, new: str) -> None:
        path = checkout / "template" / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        questions = checkout / "template/copier.yml"
        questions.write_text(questions.read_text().replace(f'default: "{version()}"', 'default: "9.0.0"'))
        commit_all(checkout)
        git(checkout, "tag", "v9.0.0")

    return make


@pytest.fixture
def host(tmp_path: Path) -> Path:
    return tmp_path / "host"
