"""What a benchmark file says of its operator: sizes, dtypes, inputs, the work to be done and who else can do it."""

import functools
import importlib
import importlib.util
import inspect
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
import torch._functorch.config  # which torch itself imports only when it compiles something

from tilewright.bench.agreement import assert_agreement
from tilewright.errors import UsageError
from tilewright.model.measurement import OWN
from tilewright.model.measurement import Problem
from tilewright.model.measurement import Unit

_MOST_PROBLEMS = 1000  # of one operator
_STUB = "default"  # name under which TileGym registers the stub itself
_UNITS: dict[str, Unit] = {"bytes_moved": "GB/s", "flops": "TFLOP/s"}
Call = Callable[[], Any]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The benchmark of one operator, imported."""

    name: str
    function: Callable[..., Any]  # the dispatched operator
    backends: Sequence[str]  # that implement it, registered by the package, the benchmark and its neighbour peers.py
    reference: Callable[..., Any]  # the PyTorch code that is registered as backend torch
    inputs: Callable[..., dict[str, Any]]
    names: tuple[str, ...]  # of the sizes
    sizes: Sequence[tuple[int, ...]]
    dtypes: Sequence[torch.dtype]
    unit: Unit
    work: Callable[..., float]
    check: Callable[[Any, Any], None] = assert_agreement  # raises AssertionError where two results differ
    gradients: Callable[[Call, dict[str, Any]], Call] | None = None  # of a call; None: the calls are timed as they are

    def problems(self, dtypes: Sequence[str] = ()) -> list[tuple[Problem, torch.dtype]]:
        """Every size in every dtype, or in those named."""
        found = {str(dtype).removeprefix("torch."): dtype for dtype in self.dtypes}
        return [
            (self._problem(size, name, dtype), dtype)
            for name, dtype in found.items()
            if name in (dtypes or found)
            for size in self.sizes
        ]

    def _problem(self, size: tuple[int, ...], name: str, dtype: torch.dtype) -> Problem:
        return Problem(
            size=dict(zip(self.names, size, strict=True)),
            dtype=name,
            backward=self.gradients is not None,
            unit=self.unit,
            work=self.work(*size, dtype),
        )

    def timed(self, call: Call, kwargs: dict[str, Any]) -> Call:
        """What is timed of a call with these arguments: itself, or the gradients of what it returns."""
        return self.gradients(call, kwargs) if self.gradients else call

    def contestants(self, against: Sequence[str] | None, kwargs: dict[str, Any]) -> dict[str, Call | None]:
        """The operator and its peers on these arguments; None for a peer that was asked for and is not registered.

        A name stands for all backends that begin with it, as `tilegym` does for `tilegym_tma`; without names every
        registered backend takes part, and torch.compile.
        """
        known: dict[str, Call] = {
            backend: lambda backend=backend: self.function(**kwargs, backend=backend)  # type: ignore[misc]
            for backend in self.backends
            if backend != _STUB
        }
        known["compile"] = lambda: _compiled(self.reference)(**kwargs)
        own = {OWN: known.pop(OWN, None)}
        if against is None:
            return own | known
        peers: dict[str, Call | None] = {}
        for name in against:
            chosen = [each for each in known if each == name or each.startswith(f"{name}_")]
            peers |= {each: known[each] for each in chosen} if chosen else {name: None}
        return own | peers


@functools.cache  # also what was compiled before anything is timed
def _compiled(reference: Callable[..., Any]) -> Callable[..., Any]:
    """The reference under torch.compile, for every shape anew."""
    torch._functorch.config.donated_buffer = False  # else gradients can be computed only once
    # beyond the limit, 8 by default, torch.compile would run the reference as it is
    torch._dynamo.config.recompile_limit = _MOST_PROBLEMS
    torch._dynamo.config.accumulated_recompile_limit = _MOST_PROBLEMS
    return torch.compile(reference, dynamic=False)  # type: ignore[no-any-return]


def load(
    *, name: str, function: str, package: str, backend: str, benchmark: str, peers: str, backward: bool = False
) -> Workload:
    """Import the benchmark of an operator, or of its gradients, and what registers further peers.

    Raises:
        UsageError: The file lacks something that a benchmark of the template has.
    """
    operator = getattr(importlib.import_module(package), function)
    module = importlib.import_module(benchmark)
    if importlib.util.find_spec(peers):
        importlib.import_module(peers)
    work = next((each for each in _UNITS if hasattr(module, each)), "")
    inputs = _required(module, "inputs")
    names = tuple(each for each in inspect.signature(inputs).parameters if each not in ("dtype", "device"))
    suffix = "_backward" if backward else ""
    return Workload(
        name=name,
        function=operator,
        backends=importlib.import_module(backend).get_available_backends_for_op(name),
        reference=_required(module, f"reference_{function}"),
        inputs=inputs,
        names=names,
        sizes=[size if isinstance(size, tuple) else (size,) for size in _required(module, "SIZES")],
        dtypes=_required(module, "DTYPES"),
        unit=_UNITS.get(work, "GB/s"),
        work=_required(module, f"{work or 'bytes_moved'}{suffix}"),
        check=getattr(module, "check", assert_agreement),
        gradients=_required(module, "gradients") if backward else None,
    )


def _required(module: ModuleType, name: str) -> Any:
    if not hasattr(module, name):
        raise UsageError(
            f"{module.__file__} has no {name}",
            expected="expected SIZES, DTYPES, inputs, bytes_moved or flops, and a reference",
            hint="add it, as in a benchmark that `tilewright new` wrote",
        )
    return getattr(module, name)
