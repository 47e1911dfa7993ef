"""Which frames are of the user: those that are neither of the interpreter nor of the compiler."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from types import TracebackType

TRANSLATED = "<translated kernel "  # how the file name of a translated kernel begins
_INTERNAL = ("tilewright.interpret", "cuda.tile", "contextlib")


def explains_itself(error: BaseException) -> bool:
    """Whether an error of a launch says all that there is to say: what the interpreter or the compiler refuses."""
    from tilewright.interpret.faults import InterpreterError

    return isinstance(error, InterpreterError) or _is_of(type(error).__module__, "cuda.tile")


def is_internal(frame: FrameType) -> bool:
    """Whether a frame is of the interpreter or the compiler, or of a context manager."""
    module = str(frame.f_globals.get("__name__", ""))
    return any(_is_of(module, each) for each in _INTERNAL) or frame.f_code.co_filename.startswith(TRANSLATED)


def without_internal(traceback: TracebackType | None) -> TracebackType | None:
    """The frames of a traceback that are of the user."""
    kept = []
    while traceback is not None:
        if not is_internal(traceback.tb_frame):
            kept.append(traceback)
        traceback = traceback.tb_next
    shortened: TracebackType | None = None
    for each in reversed(kept):
        shortened = TracebackType(shortened, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return shortened


def calling() -> Iterator[FrameType]:
    """The frames of the user that are being run, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_internal(frame):
            yield frame
        frame = frame.f_back


def _is_of(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")
