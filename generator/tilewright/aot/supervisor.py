"""Keep a number of workers busy; one that crashes or stops answering is a result.

It is replaced by another worker that goes on after the kernel at which it happened.
"""

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from tilewright.aot.worker import Imported
from tilewright.aot.worker import Unit
from tilewright.aot.worker import kernel_id
from tilewright.aot.worker import work
from tilewright.model.kernel import CaptureFailure
from tilewright.model.kernel import CompiledKernel

_GRACE = 5.0  # seconds beyond the time limit of the compiler, for what runs in Python


@dataclass
class Worker:
    """A running worker and what it last said."""

    unit: Unit
    process: BaseProcess
    deadline: float
    done: set[str] = field(default_factory=set)
    current: CompiledKernel | None = None  # being compiled

    def end(self) -> None:
        """End it together with the compiler that it runs."""
        assert self.process.pid
        with suppress(ProcessLookupError):  # it has not come as far as having a group
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()


class Supervisor:
    """Keeps a number of workers busy."""

    def __init__(self, imported: Imported, jobs: int, time_limit: float) -> None:
        self._imported = imported
        self._jobs = jobs
        self._time_limit = time_limit
        self._context = multiprocessing.get_context("fork")
        self._workers: dict[Connection, Worker] = {}

    def run(self, units: list[Unit]) -> Iterator[CompiledKernel | CaptureFailure | Unit]:
        """Results as they come; a unit after its last one."""
        waiting = deque(units)
        parent = os.getppid()
        try:
            while (waiting or self._workers) and os.getppid() == parent:  # nobody listens once the command is gone
                while waiting and len(self._workers) < self._jobs:
                    self._start(waiting.popleft(), set())
                for channel in wait(list(self._workers), timeout=1.0):
                    yield from self._receive(channel)
                for worker in self._workers.values():
                    if time.monotonic() > worker.deadline:
                        worker.end()
        finally:
            for worker in self._workers.values():
                worker.end()

    def _start(self, unit: Unit, done: set[str]) -> None:
        receiver, sender = self._context.Pipe(duplex=False)
        arguments = (self._imported, unit, frozenset(done), self._time_limit, sender)
        process = self._context.Process(target=work, args=arguments)
        process.start()
        sender.close()
        self._workers[receiver] = Worker(unit, process, self._deadline(), done)

    def _deadline(self) -> float:
        return time.monotonic() + self._time_limit + _GRACE

    def _receive(self, channel: Any) -> Iterator[CompiledKernel | CaptureFailure | Unit]:
        worker = self._workers[channel]
        try:
            message = channel.recv()
        except EOFError:
            yield from self._ended(channel)
            return
        worker.deadline = self._deadline()
        if isinstance(message, CompiledKernel) and not message.error and message.resources is None:
            worker.current = message
            return
        if isinstance(message, CompiledKernel):
            worker.done.add(kernel_id(message))
            worker.current = None
        yield message

    def _ended(self, channel: Connection) -> Iterator[CompiledKernel | CaptureFailure | Unit]:
        worker = self._workers.pop(channel)
        channel.close()
        late = time.monotonic() > worker.deadline
        worker.process.join()
        code = worker.process.exitcode or 0
        if code == 0:
            yield worker.unit
            return
        reason = f"no answer in {self._time_limit:.0f} s" if late else _describe_exit(code)
        if worker.current is None:
            yield CaptureFailure(arch=worker.unit.target.name, dtype=worker.unit.dtype, error=reason)
            yield worker.unit
            return
        yield replace(worker.current, error=reason)
        self._start(worker.unit, worker.done | {kernel_id(worker.current)})


def _describe_exit(code: int) -> str:
    return f"the process was ended by {signal.Signals(-code).name}" if code < 0 else f"the process exited with {code}"
