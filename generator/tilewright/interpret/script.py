"""Run a script or a module as Python would, with its kernels on the CPU."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tilewright.errors import UsageError
from tilewright.interpret import enabled


def run_script(name: str, arguments: Sequence[str], *, module: bool, arch: str, check: bool) -> int:
    """Run `python NAME ARGUMENTS`, or `python -m NAME ARGUMENTS`; returns its exit status.

    With `check` all launches are checked; what is found is printed to stderr, and a script that ends well ends with 1.

    Raises:
        UsageError: There is no such script or module.
        MissingError: cuda-tile or torch is not installed.
    """
    folder = os.getcwd() if module else str(Path(name).resolve().parent)
    if Path(name).is_dir() and not module:
        folder = name
    argv, path = sys.argv, sys.path[:]
    sys.argv, sys.path[:1] = [name, *arguments], [folder]
    try:
        _require(name, module=module)
        found: list[str] = []
        with enabled(arch=arch, check=check, report=lambda error: found.append(str(error))):
            status = _run(name, module=module)
    finally:
        sys.argv, sys.path[:] = argv, path
    for text in found:
        print(text, file=sys.stderr)
    return status or int(bool(found))


def _require(name: str, *, module: bool) -> None:
    if not module:
        if not name or not Path(name).exists():
            raise UsageError(
                f"no file {name or repr(name)}", expected="expected a Python script", hint="for a module: -m NAME"
            )
        if Path(name).is_dir() and not (Path(name) / "__main__.py").exists():
            raise UsageError(
                f"no file __main__.py in {name}", expected="expected a Python script, or a folder that has it"
            )
        return
    try:
        known = importlib.util.find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):  # a parent is missing; the name is relative
        known = False
    if not known:
        raise UsageError(f"no module {name}", expected="expected one that can be imported from here")


def _run(name: str, *, module: bool) -> int:
    try:
        if module:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(name, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        traceback.print_exception(error.with_traceback(_of_script(error.__traceback__)))
        return 1
    return 0


def _of_script(frames: TracebackType | None) -> TracebackType | None:
    """The frames of a traceback from the script on; none for a script that does not compile."""
    ours = {__file__, runpy.__file__, "<frozen runpy>"}
    while frames is not None and frames.tb_frame.f_code.co_filename in ours:
        frames = frames.tb_next
    return frames
