"""Run Python in a child process, in the host and with its packages importable."""

import os
import subprocess
import sys
from collections.abc import Sequence

from tilewright.model.operator import Operator

Done = subprocess.CompletedProcess[str]


def run_python(operator: Operator, arguments: Sequence[str], *, limit: float) -> Done:
    """Run `python ARGUMENTS` at the root of the host; one that takes longer than `limit` seconds is ended."""
    paths = [*map(str, operator.import_paths), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, *arguments]
    try:
        return subprocess.run(
            command,
            cwd=operator.host.root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Done(command, 124, "", f"took longer than {limit:.0f} s")


def last_line(done: Done) -> str:
    """What a failed process said last: the exception, or pytest's summary."""
    text = done.stderr.strip() or done.stdout.strip()
    return text.splitlines()[-1] if text else f"exit code {done.returncode}"
