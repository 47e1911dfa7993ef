"""Streams and events of the emulated device, where work is done when it is asked for."""

import time
from typing import Any

import torch

from tilewright.interpret.host.placement import DEVICE


class Event:
    """A point in time, as torch.cuda.Event; always with timing."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self._time: float | None = None

    def record(self, _stream: Any = None) -> None:
        """Note the time."""
        self._time = time.perf_counter()

    def elapsed_time(self, end_event: "Event") -> float:
        """Milliseconds from this event to the other.

        Raises:
            RuntimeError: One of them was not recorded.
        """
        if self._time is None or end_event._time is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) * 1e3

    def query(self) -> bool:
        """All work is done."""
        return True

    def wait(self, _stream: Any = None) -> None:
        """All work is done."""

    def synchronize(self) -> None:
        """All work is done."""


class Stream:
    """A stream, as torch.cuda.Stream; work on all streams is done in the order in which it is asked for."""

    device = DEVICE
    device_index = 0
    device_type = 1
    priority = 0

    def __init__(self, device: Any = None, *_args: Any, stream_ptr: int | None = None, **_kwargs: Any) -> None:
        del device
        self.cuda_stream = id(self) if stream_ptr is None else stream_ptr
        self.stream_id = self.cuda_stream
        self._chosen: list[Any] = []  # contexts in which it is current

    def __enter__(self) -> "Stream":
        """Choose the stream for a while."""
        self._chosen.append(torch.cuda.stream(self))
        self._chosen[-1].__enter__()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._chosen.pop().__exit__(None, None, None)

    def query(self) -> bool:
        """All work is done."""
        return True

    def synchronize(self) -> None:
        """All work is done."""

    def is_capturing(self) -> bool:
        """No CUDA graph is being captured."""
        return False

    def wait_event(self, event: Event) -> None:
        """All work is done."""

    def wait_stream(self, stream: "Stream") -> None:
        """All work is done."""

    def record_event(self, event: Event | None = None) -> Event:
        """Note the time in an event, a new one if none is given."""
        event = Event() if event is None else event
        event.record()
        return event


class CUDAGraph:
    """Stands for torch.cuda.CUDAGraph, which would have to record the work on a device."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        raise NotImplementedError("CUDA graphs are not emulated\ncall the function itself where there is no GPU")
