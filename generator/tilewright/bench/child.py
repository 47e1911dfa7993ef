"""A child process that says JSON lines, and is ended when it says nothing for too long."""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

Event = dict[str, Any]


class ChildEndedError(Exception):
    """The child is gone before it had said everything; the message says how it ended."""


class Child:
    """`python COMMAND` in the folder of a host, reading JSON from stdin and writing it to stdout."""

    def __init__(self, command: Sequence[str], *, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the child
        self._process = subprocess.Popen(
            [sys.executable, "-P", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=folder,
            env=os.environ | dict(environment or {}),
            start_new_session=True,  # so that the compilers it starts can be ended with it
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def tell(self, request: Mapping[str, Any], *, last: bool = False) -> None:
        """Send one line; after the last one the child sees the end of its input."""
        assert self._process.stdin
        with suppress(BrokenPipeError):  # it has ended, as the next event says
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            if last:
                self._process.stdin.close()

    def event(self, patience: float) -> Event | None:
        """What it says next; None when it has ended in good order.

        Raises:
            ChildEndedError: It crashed, or was ended because it said nothing for `patience` seconds.
        """
        try:
            line = self._lines.get(timeout=patience)
        except queue.Empty:
            self.end()
            raise ChildEndedError(f"no answer in {patience:.0f} s") from None
        if line is not None:
            return dict(json.loads(line))
        code = self._process.wait()
        if code < 0:
            raise ChildEndedError(f"the process was ended by {signal.Signals(-code).name}")
        if code:
            raise ChildEndedError(self._last_words() or f"the process exited with {code}")
        return None

    def events(self, patience: float) -> Iterator[Event]:
        """All that it says until it ends."""
        while (event := self.event(patience)) is not None:
            yield event

    def _last_words(self) -> str:
        self._errors.seek(0)
        return next((line.strip() for line in reversed(self._errors.readlines()) if line.strip()), "")

    def end(self) -> None:
        """End it together with what it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._errors):
            with suppress(BrokenPipeError):
                if stream:
                    stream.close()
