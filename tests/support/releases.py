"""A checkout of the template with two releases, and hosts made from them."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.render import Batch
from tilewright.render import Source
from tilewright.render import locate

GENERATOR = Path(__file__).parents[2] / "generator"
NEXT = "99.0.0"
KERNEL = "template/standalone/{{ package }}/{{ op }}/cutile.py.jinja"
INTERFACE = "template/standalone/{{ package }}/{{ op }}/interface.py.jinja"
CHANGELOG = f"""# Changelog

## [{NEXT}] - 2027-01-01

### Changed

- Say what the kernel is,
  in other words.

## [0.1.0] - 2026-11-29

- The first.
"""
_GIT = {
    **{f"GIT_{role}_NAME": "Tester" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "tester@example.com" for role in ("AUTHOR", "COMMITTER")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, as somebody without settings; returns what it prints."""
    done = subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **_GIT}, check=True, capture_output=True)
    return done.stdout.decode()


def commit(folder: Path, message: str = "Commit") -> None:
    """Commit everything in a folder, which becomes a repository if it is none."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "--initial-branch=main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


def check_out_template(folder: Path) -> Source:
    """The template of this repository as its first release, tagged."""
    installed = locate()
    folder.mkdir(parents=True)
    shutil.copy(installed.root / "copier.yml", folder)
    shutil.copytree(installed.template, folder / "template")
    commit(folder, "First")
    git(folder, "tag", f"v{own_version()}")
    return Source(root=folder, recorded=None)


def own_version() -> str:
    """The version that this repository's template says it is, without the v."""
    from tilewright.update.templates import own_version

    return own_version(locate()).removeprefix("v")


def release(source: Source, version: str, edits: Mapping[str, tuple[str, str]]) -> None:
    """Another release, in which each of the files has other text; the first text must be there."""
    edits = {"template/copier.yml": (f'default: "{own_version()}"', f'default: "{version}"'), **edits}
    for name, (old, new) in edits.items():
        path = source.root / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")
    (source.root / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    commit(source.root, version)
    git(source.root, "tag", f"v{version}")


def make_host(root: Path, source: Source, *operators: Mapping[str, Any]) -> None:
    """A committed host with operators of the template as it is now."""
    batch = Batch(source.template)
    root.mkdir(parents=True, exist_ok=True)
    for answers in operators:
        for file in batch.render(answers, root, source=str(source.root), recorded=False).files:
            target = root / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            if not (file.shared and target.exists()):
                target.write_bytes(file.content)
    commit(root, "Add operators")


def contents(root: Path) -> dict[str, bytes]:
    """Every file of a repository by its path, without what git keeps."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in files if ".git" not in path.parts}
