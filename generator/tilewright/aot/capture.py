"""Run an operator's host function on the inputs of its tests and record what it launches."""

import importlib
import itertools
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import cuda.tile as ct
import torch

from tilewright.aot.standin import OnMeta
from tilewright.cutile.signature import signature


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A kernel and the arguments of one launch of it."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    aligned: bool  # whether arrays may be assumed to start at a multiple of 16 bytes

    @property
    def name(self) -> str:
        """Name of the kernel's Python function."""
        return str(self.kernel._pyfunc.__name__)

    @property
    def hints(self) -> str:
        """Compiler hints that differ from the defaults."""
        options = self.kernel._compiler_options
        defaults = vars(type(options)())
        return ", ".join(f"{name}={value}" for name, value in sorted(vars(options).items()) if value != defaults[name])

    @property
    def signature(self) -> Any:
        """Signature to compile for."""
        return signature(self.kernel, self.arguments, aligned=self.aligned)


class Recorder:
    """Takes the place of `cuda.tile.launch` and keeps what would have been launched."""

    def __init__(self) -> None:
        self.aligned = True
        self._launches: list[Launch] = []

    def launch(self, _stream: Any, grid: Any, kernel: Any, arguments: tuple[Any, ...], /, **_options: Any) -> None:
        """Check what the real one checks of the grid, keep the rest."""
        if not isinstance(grid, tuple) or not all(isinstance(n, int) for n in grid):
            raise TypeError(f"the grid must be a tuple of integers, got {grid!r}")
        if len(grid) > 3 or not all(0 < n < 2**24 for n in grid) or any(n > 65535 for n in grid[1:]):
            raise ValueError(f"the grid must be at most (16777215, 65535, 65535) and nowhere 0, got {grid}")
        self._launches.append(Launch(kernel=kernel, grid=grid, arguments=arguments, aligned=self.aligned))

    def take(self) -> list[Launch]:
        """Launches since the last call."""
        taken, self._launches = self._launches, []
        return taken


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An imported operator: its dispatch function, its test class and the kernels that its module defines."""

    function: Any
    cases: Any
    kernels: frozenset[str]

    @property
    def dtypes(self) -> dict[str, torch.dtype]:
        """Dtypes that the tests cover, by their name in torch."""
        return {str(dtype).removeprefix("torch."): dtype for dtype in self.cases._dtypes}


def load(*, paths: list[str], package: str, stub: str, name: str, kernel: str, test: str) -> Subject:
    """Import the operator `name` from modules below these folders."""
    sys.path[:0] = paths
    importlib.import_module(package)
    function = getattr(importlib.import_module(stub), name)
    module = importlib.import_module(kernel)
    classes = [value for value in vars(importlib.import_module(test)).values() if hasattr(value, "inputs")]
    if not classes:
        raise LookupError(f"{test} has no class with a static method `inputs`: add it, to have cases to compile for")
    kernels = frozenset(
        value._pyfunc.__name__
        for value in vars(module).values()
        if isinstance(value, ct.kernel) and value._pyfunc.__module__ == kernel
    )
    return Subject(function=function, cases=classes[0], kernels=kernels)


def capture(subject: Subject, recorder: Recorder, dtype: torch.dtype) -> list[Launch]:
    """Launches of each kernel for an aligned and an unaligned input of this dtype.

    The first shape of either kind decides; further shapes and arguments are tried only for kernels it did not reach.
    """
    found: list[Launch] = []
    for recorder.aligned, shapes in ((True, subject.cases._aligned), (False, subject.cases._ragged)):
        reached: set[str] = set()
        for shape, arguments, fits in _attempts(subject, shapes):
            with nullcontext() if fits else suppress(ValueError):
                _run(subject, shape, dtype, arguments)
            fresh = [launch for launch in recorder.take() if launch.name not in reached]
            reached.update(launch.name for launch in fresh)
            found += fresh
            if reached >= subject.kernels:
                break
    return found


def _attempts(subject: Subject, shapes: list[Any]) -> Iterator[tuple[Any, dict[str, Any], bool]]:
    """Shapes, arguments, and whether these are made for such a shape: the operator may refuse others."""
    arguments = getattr(subject.cases, "_arguments", ())
    yield from ((shape, {}, True) for shape in shapes)
    yield from ((shape, more, True) for shape, more in itertools.product(shapes[:1], arguments))
    if hasattr(subject.cases, "_huge"):
        yield subject.cases._huge, {}, True
    yield from ((shape, more, False) for shape, more in itertools.product(shapes[1:], arguments))


def _run(subject: Subject, shape: Any, dtype: torch.dtype, arguments: dict[str, Any]) -> None:
    """Call the operator, and once more with gradients."""
    with OnMeta():
        inputs = subject.cases.inputs(shape, dtype, device="cuda") | arguments
        subject.function(**inputs)
        trained = {name: inputs[name] for name in getattr(subject.cases, "_trained", inputs)}
        tracked = {name: value.detach().requires_grad_() for name, value in trained.items() if _differentiable(value)}
        if tracked:
            results = subject.function(**{**inputs, **tracked})
            results = results if isinstance(results, tuple) else (results,)
            results = tuple(r for r in results if isinstance(r, torch.Tensor) and r.requires_grad)
            torch.autograd.backward(results, tuple(map(torch.empty_like, results)))


def _differentiable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()
