"""Launch kernels on the CPU: what stands in for `cuda.tile.launch`."""

import gc
import operator
import threading
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextlib import contextmanager
from contextlib import nullcontext
from dataclasses import dataclass
from dataclasses import field
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.utils._python_dispatch import _disable_current_modes

from tilewright.cutile.signature import annotations_of
from tilewright.cutile.signature import signature
from tilewright.interpret import operations  # noqa: F401  registers what runs each operation
from tilewright.interpret.arguments import FlatArguments
from tilewright.interpret.arguments import as_tensors
from tilewright.interpret.arguments import flatten
from tilewright.interpret.check.launch import run_checked
from tilewright.interpret.check.watching import watched
from tilewright.interpret.faults import LaunchError
from tilewright.interpret.faults import Location
from tilewright.interpret.frontend import is_kernel
from tilewright.interpret.frontend import typed_kernel
from tilewright.interpret.grid import FailedBlock
from tilewright.interpret.grid import Work
from tilewright.interpret.grid import run_grid
from tilewright.interpret.run import LOCATIONS
from tilewright.interpret.run import Grid
from tilewright.interpret.run import print_text
from tilewright.interpret.settings import Settings
from tilewright.interpret.translate.kernel import TranslatedKernel
from tilewright.interpret.translate.kernel import translate

_MOST_BLOCKS = (2**24 - 1, 2**16 - 1, 2**16 - 1)  # along each axis: what cuTile's own launch allows


@dataclass(slots=True)
class _Specializations:
    """Translations of one kernel function: by the key of a launch, which is cheap, and by what it stands for."""

    by_key: dict[tuple[Any, ...], TranslatedKernel] = field(default_factory=dict)
    by_signature: dict[str, TranslatedKernel] = field(default_factory=dict)


class Launcher:
    """Launches kernels on the CPU; keeps their translations. Safe to use from several threads."""

    def __init__(self, settings: Settings | None = None, output: Callable[[str], object] = print_text) -> None:
        """`output` takes what kernels print."""
        self.settings = settings or Settings()
        self._output = output
        self._specializations: WeakKeyDictionary[Any, _Specializations] = WeakKeyDictionary()
        self._lock = threading.RLock()

    def launch(
        self,
        stream: Any,
        grid: tuple[int, ...],
        kernel: Any,
        kernel_args: tuple[Any, ...],
        /,
        *,
        programmatic_dependent_launch: bool = False,  # noqa: ARG002  one launch runs at a time
    ) -> None:
        """Run a kernel over a grid; takes the arguments of `cuda.tile.launch`, with arrays in the memory of the CPU.

        All blocks have run when it returns, whatever the stream.

        Raises TypeError, OverflowError or `LaunchError` for a launch that cannot be, the compiler's own errors for a
        kernel that it refuses, and for one that fails what it failed with, with a note of where in which block.
        """
        if stream is None:
            raise TypeError("a launch takes a stream, such as torch.cuda.current_stream(), not None")
        if not is_kernel(kernel):
            raise TypeError(f"a launch takes a kernel, a function decorated with @ct.kernel, not {kernel!r}")
        if not isinstance(kernel_args, tuple):
            raise TypeError(f"a launch takes the kernel's arguments as a tuple, not as {type(kernel_args).__name__}")
        # The tensors may be of a subclass that stands for a GPU's, or be used under a mode of the host.
        with torch._C.DisableTorchFunction(), torch.no_grad(), _without_autocast(), _without_dispatch():
            work = self._prepare(checked_grid(grid), kernel, kernel_args)
            with _noted(work.kernel.name):
                (run_checked if self.settings.check else run_grid)(work)

    def _prepare(self, grid: Grid, kernel: Any, kernel_args: tuple[Any, ...]) -> Work:
        arguments = as_tensors(kernel_args)
        annotations = annotations_of(kernel, len(arguments))
        flat = flatten(arguments, annotations, tuple(kernel._annotated_function.pysig.parameters))
        return Work(
            kernel=self._specialize(kernel, arguments, flat),
            grid=grid,
            arguments=flat.values,
            memory=flat.memory,
            settings=self.settings,
            output=self._output,
        )

    def _specialize(self, kernel: Any, arguments: tuple[Any, ...], flat: FlatArguments) -> TranslatedKernel:
        function = kernel._annotated_function
        known = self._specializations.get(function.pyfunc)
        key = tuple(flat.key)
        if known is not None and (found := known.by_key.get(key)) is not None:
            return found
        parameters = signature(kernel, arguments, aligned=True).parameters
        with self._lock, _without_collections():
            known = self._specializations.setdefault(function.pyfunc, _Specializations())
            text = repr(parameters)  # some constraints cannot be hashed
            found = known.by_signature.get(text)
            if found is None:
                typed = typed_kernel(function, parameters, self.settings.arch)
                found = translate(typed, watched(typed.body, self.settings.arch) if self.settings.check else None)
                known.by_signature[text] = found
            known.by_key[key] = found
        return found


def checked_grid(grid: Any) -> Grid:
    """The grid with three axes; raises TypeError, or `LaunchError` for one that cuTile or the driver refuses."""
    if not isinstance(grid, tuple):
        raise TypeError(f"a grid is a tuple of up to three ints, not {grid!r}")
    if len(grid) > 3:
        raise LaunchError(f"a grid has at most 3 axes, not {len(grid)}: {grid}")
    blocks = [operator.index(length) for length in grid]
    for axis, (length, most) in enumerate(zip(blocks, _MOST_BLOCKS, strict=False)):
        if not 0 < length <= most:
            raise LaunchError(f"axis {axis} of a grid has 1 to {most} blocks, not {length}: {grid}")
    x, y, z = blocks + [1] * (3 - len(blocks))
    return x, y, z


def _without_autocast() -> AbstractContextManager[Any]:
    """Where products of matrices have the dtype of their operands; quick where they have it anyway."""
    return torch.autocast("cpu", enabled=False) if torch.is_autocast_enabled("cpu") else nullcontext()


def _without_dispatch() -> AbstractContextManager[Any]:
    """Where no mode of the host, as one that counts operations, sees those of the kernel; quick where there is none."""
    return _disable_current_modes() if torch._C._len_torch_dispatch_stack() else nullcontext()


@contextmanager
def _without_collections() -> Iterator[None]:
    """Where no garbage is searched for: all IR of a kernel is in use until it is translated, and none of it then."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _noted(name: str) -> Iterator[None]:
    """Raise what a block raised itself, with a note of where it was."""
    try:
        yield
    except FailedBlock as failed:
        error = failed.error
        location = _location(error.__traceback__)
        where = f" at {location}" if location is not None else ""
        error.add_note(f"kernel {name}, block {failed.block}{where}")
        raise error from error.__cause__


def _location(traceback: TracebackType | None) -> Location | None:
    """The innermost place in the kernel that a traceback of a translated kernel goes through."""
    found: Location | None = None
    while traceback is not None:
        locations = traceback.tb_frame.f_globals.get(LOCATIONS)
        if locations is not None:
            found = locations.get(traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
