"""Kill a function of this process at the n-th thing that it does to the disk, in a child that is a copy of it."""

import os
import pathlib
import signal
import subprocess
from collections.abc import Callable
from typing import Any

_CALLS = (
    (os, "replace"),
    (os, "unlink"),
    (os, "link"),
    (os, "mkdir"),
    (os, "rmdir"),
    (pathlib.Path, "write_bytes"),
    (pathlib.Path, "write_text"),
    (subprocess, "run"),
)


def count_calls(function: Callable[[], Any]) -> int:
    """How many moments there are at which `run_and_kill` can kill the function; runs it in a child."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        counter = _instrument(0)
        function()
        os.write(writing, str(counter[0]).encode())
        os._exit(0)
    os.wait()
    os.close(writing)
    with os.fdopen(reading) as pipe:
        return int(pipe.read())


def run_and_kill(function: Callable[[], Any], call: int) -> bool:
    """Run a function in a child that dies before its `call`-th step; whether it died."""
    child = os.fork()
    if child == 0:
        _instrument(call)
        try:
            function()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _instrument(call: int) -> list[int]:
    counter = [0]

    def deadly(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            counter[0] += 1
            if counter[0] == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return wrapped

    for module, name in _CALLS:
        setattr(module, name, deadly(getattr(module, name)))
    return counter
