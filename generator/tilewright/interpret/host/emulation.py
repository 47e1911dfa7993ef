"""Emulate a CUDA device for a while: everything that it takes, put in place together and taken away together."""

import functools
import importlib
import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import ExitStack
from contextlib import contextmanager
from typing import Any

import torch

from tilewright.cutile.targets import Target
from tilewright.interpret.host import accelerator
from tilewright.interpret.host import autograd
from tilewright.interpret.host import profiling
from tilewright.interpret.host import random
from tilewright.interpret.host import threads
from tilewright.interpret.host import timing
from tilewright.interpret.host.cuda import CudaDevice
from tilewright.interpret.host.device_mode import DeviceMode
from tilewright.interpret.host.device_mode import Observer
from tilewright.interpret.host.device_mode import is_active
from tilewright.interpret.host.placement import is_emulated
from tilewright.interpret.host.placement import tensors
from tilewright.interpret.host.serialization import emulated_locations
from tilewright.interpret.host.substitution import Replacement
from tilewright.interpret.host.substitution import Substitution

_lock = threading.Lock()
_emulations: list["_Emulation"] = []  # that are in place, the innermost last: names of modules are of the whole process


class _Emulation:
    """One emulated device, and the thread that it is for."""

    def __init__(self, mode: DeviceMode, replacements: Iterable[Replacement]) -> None:
        self.thread = threading.get_ident()
        self.over = False
        self._mode = mode
        self._of_thread = mode.entered()
        with ExitStack() as stack:
            stack.enter_context(Substitution(replacements))
            stack.enter_context(emulated_locations())
            self._of_thread.__enter__()
            self._of_process = stack.pop_all()

    def take_away(self) -> None:
        """Leave everything as it was; a mode that another thread has on its stack stays there and does nothing."""
        self._of_process.close()
        if self.thread == threading.get_ident():
            self._of_thread.__exit__(None, None, None)
        else:
            self._mode.over = True


@contextmanager
def emulated_device(target: Target, launch: Callable[..., None], *, observe: Observer | None = None) -> Iterator[None]:
    """Emulate a GPU of the architecture `target`, with `launch` in the place of `cuda.tile.launch`.

    It is there for the thread that enters, and for threads that are started meanwhile. May be nested, and left in any
    order: one that is left before those inside of it goes with them. `observe` is told of the functions of PyTorch that
    are called.

    Raises:
        RuntimeError: Another thread emulates a device.
    """
    with _lock:
        if _emulations and _emulations[-1].thread != threading.get_ident():
            raise RuntimeError(
                "another thread emulates a CUDA device\n"
                "enter before the threads are started: they can all use the device"
            )
        emulation = _emulate(target, _on_one_device(launch), DeviceMode(observe))
        _emulations.append(emulation)
    try:
        yield
    finally:
        with _lock:
            emulation.over = True
            while _emulations and _emulations[-1].over:
                _emulations.pop().take_away()


def _emulate(target: Target, launch: Callable[..., None], mode: DeviceMode) -> _Emulation:
    device = CudaDevice(target)
    replacements = [
        (importlib.import_module("cuda.tile"), "launch", functools.partial(launch)),
        *accelerator.replacements(device),
        *profiling.replacements(),
        (torch, "compile", functools.partial(_compile)),
        (torch.Tensor, "record_stream", lambda _tensor, _stream: None),
        *device.replacements(),
        *random.replacements(),
        *timing.replacements(launch),
        *autograd.replacements(mode),
        *threads.replacements(mode),
    ]
    return _Emulation(mode, replacements)


def _on_one_device(launch: Callable[..., None]) -> Callable[..., None]:
    """The launch, which refuses tensors of two devices; inside of transforms of torch.func new ones are on none."""

    @functools.wraps(launch)
    def launch_on_one_device(*args: Any, **kwargs: Any) -> None:
        if is_active() and len({is_emulated(tensor) for tensor in tensors(args)}) > 1:
            raise RuntimeError(
                "the launch passes tensors on cuda:0 and on the CPU\n"
                "a kernel runs where all of them are: call cuda() on them"
            )
        launch(*args, **kwargs)

    return launch_on_one_device


def _compile(model: Callable[..., Any] | None = None, **_options: Any) -> Any:
    """`torch.compile`, which leaves everything as it is."""
    return (lambda function: function) if model is None else model
