"""Run a script or a module as Python would, with its kernels on the CPU."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from tilewright.errors import UsageError
from tilewright.interpret import enabled
from tilewright.interpret.frames import calling
from tilewright.interpret.frames import explains_itself
from tilewright.interpret.frames import without_internal

if TYPE_CHECKING:
    from tilewright.interpret.check import CheckError


class _Record:
    """The launches of a script that were checked, and what was found in them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._launches = 0
        self._found: list[tuple[str, CheckError]] = []

    @property
    def any(self) -> bool:
        """Whether anything was found."""
        return bool(self._found)

    def launched(self) -> None:
        """A launch has run."""
        with self._lock:
            self._launches += 1

    def add(self, error: CheckError) -> None:
        """Faults of the launch that is being made."""
        self._found.append((_line_of_script(), error))

    def __str__(self) -> str:
        lines = [f"{line}launch with {error.arrays}\n{error}" for line, error in self._found]
        launches = f"{self._launches} launch{'' if self._launches == 1 else 'es'} checked"
        number = sum(len(error.findings) for _, error in self._found)
        if number:
            found = f"{number} fault{'' if number == 1 else 's'} found in {len(self._found)} of them"
        else:
            found = "nothing found"
        return "\n".join([*lines, f"{launches}, {found}" if self._launches else "no launch was checked"])


def _line_of_script() -> str:
    """The line of the script that is being run, or in another thread that which launches."""
    frames = list(calling())
    own = [frame for frame in frames if frame.f_globals.get("__name__") == "__main__"]
    frame = next(iter(own or frames), None)
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}: "


def run_script(
    name: str, arguments: Sequence[str], *, module: bool, arch: str, check: bool, debug: bool = False
) -> int:
    """Run `python NAME ARGUMENTS`, or `python -m NAME ARGUMENTS`; returns its exit status.

    With `check` all launches are checked; what is found is printed to stderr, and a script that ends well ends with 1.
    The traceback of an error shows the frames of the script, with `debug` those of the interpreter and compiler too.

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
        record = _Record()
        with enabled(arch=arch, check=check, report=record.add, launched=record.launched):
            status = _run(name, module=module, debug=debug)
    finally:
        sys.argv, sys.path[:] = argv, path
    if check:
        print(record, file=sys.stderr)
    return status or int(record.any)


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


def _run(name: str, *, module: bool, debug: bool) -> int:
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
        frames = _of_script(error.__traceback__)
        if explains_itself(error) and not debug:
            frames = without_internal(frames)
        traceback.print_exception(error.with_traceback(frames))
        return 1
    return 0


def _of_script(frames: TracebackType | None) -> TracebackType | None:
    """The frames of a traceback from the script on; none for a script that does not compile."""
    ours = {__file__, runpy.__file__, "<frozen runpy>"}
    while frames is not None and frames.tb_frame.f_code.co_filename in ours:
        frames = frames.tb_next
    return frames
