"""Emulate a CUDA device for a while: everything that it takes, put in place together and taken away together."""

import functools
import importlib
import threading
from collections.abc import Callable
from collections.abc import Iterator
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
from tilewright.interpret.host.substitution import Substitution

_entered = threading.RLock()  # names of modules are of the whole process


@contextmanager
def emulated_device(target: Target, launch: Callable[..., None], *, observe: Observer | None = None) -> Iterator[None]:
    """Emulate a GPU of the architecture `target`, with `launch` in the place of `cuda.tile.launch`.

    It is there for the thread that enters, and for threads that are started meanwhile. May be nested. `observe` is told
    of the functions of PyTorch that are called.

    Raises:
        RuntimeError: Another thread emulates a device.
    """
    if not _entered.acquire(blocking=False):
        raise RuntimeError(
            "another thread emulates a CUDA device\nenter before the threads are started: they can all use the device"
        )
    launch = _on_one_device(launch)
    try:
        mode = DeviceMode(observe)
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
        with Substitution(replacements), emulated_locations(), mode.entered():
            yield
    finally:
        _entered.release()


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
