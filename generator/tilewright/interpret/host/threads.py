"""Threads that are started while a device is emulated can use it too."""

import threading
from collections.abc import Callable

from tilewright.interpret.host.device_mode import DeviceMode
from tilewright.interpret.host.substitution import Replacement


def replacements(mode: DeviceMode) -> list[Replacement]:
    """What takes the place of threading.Thread.start."""
    original = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        """Start the thread, with the mode active in it."""
        thread.run = _in_mode(thread.run, mode)  # type: ignore[method-assign]
        original(thread)

    return [(threading.Thread, "start", start)]


def _in_mode(run: Callable[[], None], mode: DeviceMode) -> Callable[[], None]:
    def run_in_mode() -> None:
        with mode.entered():
            run()

    return run_in_mode
