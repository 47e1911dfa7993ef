"""A checkout of this repository with its environment, and a shell to run the commands of a page in."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright import __version__

ROOT = Path(__file__).parents[2]
FOLDERS = ("template", "generator", "reference_ops", ".tilewright")
CHECKOUT = ("CHANGELOG.md", "copier.yml", *FOLDERS, "Makefile", "pyproject.toml")
KEPT = ("HOME", "LANG", "TMPDIR", "CUDA_TILE_CACHE_DIR", "XDG_CACHE_HOME")
NEXT = "99.0.0"
MARK = "\x1e"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What one command did."""

    status: int
    output: str


def check_out(folder: Path, *, published: Path) -> None:
    """Make a checkout with its environment; `published`, where it was cloned from, has a newer release."""
    _commit_working_tree(folder)
    _git(folder, "clone", "-q", ".", str(published))
    _release(published)
    _git(folder, "remote", "add", "--track", "main", "origin", str(published))
    _git(folder, "config", "branch.main.remote", "origin")
    _git(folder, "config", "branch.main.merge", "refs/heads/main")
    _make_environment(folder / ".venv")


def run(commands: Sequence[str], folder: Path, checkout: Path) -> list[Ran]:
    """Run commands one after the other in one shell, as a reader would."""
    lines = [f"{text}\nstatus=$?; printf '{MARK}%d{MARK}' $status; (exit $status)" for text in commands]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=folder,
        env=_environment(checkout),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    parts = done.stdout.split(MARK)[:-1]
    return [Ran(status=int(status), output=text) for text, status in zip(parts[::2], parts[1::2], strict=True)]


def _environment(checkout: Path) -> dict[str, str]:
    """Only what a page may rely on; never a GPU, so that outputs are the same everywhere."""
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "PATH": f"{checkout / '.venv/bin'}{os.pathsep}{os.environ['PATH']}",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONUNBUFFERED": "1",
        "NO_COLOR": "1",
        "PIP_NO_INDEX": "1",
        **{f"GIT_{role}_NAME": "Reader" for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_EMAIL": "reader@example.com" for role in ("AUTHOR", "COMMITTER")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def _commit_working_tree(folder: Path) -> None:
    """The working tree as a release; with the caches of Python, that no command compiles the package anew."""
    folder.mkdir(parents=True)
    for name in (*CHECKOUT, "constraints.txt", ".gitignore"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
        elif (ROOT / name).exists():
            shutil.copy2(ROOT / name, folder / name)
    _git(folder, "init", "-q", "--initial-branch=main")
    _commit(folder, f"v{__version__}")


def _release(folder: Path) -> None:
    """A release in which the first sentence of every kernel file is another one."""
    for file, old, new in (
        ("template/copier.yml", f'default: "{__version__}"', f'default: "{NEXT}"'),
        (
            "template/standalone/{{ package }}/{{ op }}/cutile.py.jinja",
            '"""cuTile backend of',
            '"""The cuTile kernel of',
        ),
    ):
        text = (folder / file).read_text(encoding="utf-8")
        assert old in text, f"{file} has no {old!r}"
        (folder / file).write_text(text.replace(old, new), encoding="utf-8")
    _commit(folder, f"v{NEXT}")


def _make_environment(folder: Path) -> None:
    """The interpreter that runs the tests, as `make` would have installed it."""
    (folder / "bin").mkdir(parents=True)
    for name, arguments in (("python", ""), ("tilewright", "-m tilewright"), ("copier", "-m copier")):
        script = folder / "bin" / name
        generator = '$(realpath "$(dirname "$0")/../../generator")'
        script.write_text(f'#!/bin/sh\nPYTHONPATH={generator} exec {sys.executable} {arguments} "$@"\n')
        script.chmod(0o755)
    (folder / "bin/activate").touch()
    (folder / ".ready").touch()


def _commit(folder: Path, tag: str) -> None:
    _git(folder, "add", "-A")
    _git(folder, "commit", "-qm", tag)
    _git(folder, "tag", tag)


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env=_environment(folder), check=True, capture_output=True)
