"""Run git: in a repository, or apart from every setting of the user."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tilewright.errors import HostError

# What a hook or an alias that called us would hand on; each means another repository than the one asked for.
_POINTERS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_COMMON_DIR")
_PLAIN = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


def is_installed() -> bool:
    """Whether there is a git to run."""
    return shutil.which("git") is not None


def run(
    folder: Path | None,
    *arguments: str,
    given: bytes = b"",
    environment: Mapping[str, str] | None = None,
    check: bool = True,
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder.

    Raises:
        HostError: It failed and `check` is set.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in _POINTERS}
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        input=given,
        env={**inherited, **_PLAIN, **(environment or {})},
        capture_output=True,
        check=False,
    )
    if check and done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split()) or f"status {done.returncode}"
        raise HostError(
            f"git {next(word for word in arguments if not word.startswith('-'))} failed: {said[:300]}",
            expected="expected a repository that git can read and write",
            hint="mend that and run the command again",
        )
    return done
