"""Child process of `tune`: put candidates in the place of an operator's kernel file, and compile, time or check them.

One that compiles sees no GPU and says of each size which launches a candidate leads to. The others run on the GPU.
"""

import hashlib
import importlib
import json
import linecache
import os
import sys
import time
from collections.abc import Callable
from collections.abc import Iterable
from dataclasses import asdict
from dataclasses import replace
from types import ModuleType
from typing import Any

import cuda.tile as ct
import torch

from tilewright.aot.capture import Launch
from tilewright.aot.capture import Recorder
from tilewright.aot.cubin import read_code
from tilewright.aot.cubin import read_resources
from tilewright.aot.standin import OnMeta
from tilewright.aot.standin import StandIn
from tilewright.aot.worker import beyond_limit
from tilewright.aot.worker import describe_error
from tilewright.aot.worker import export_cubin
from tilewright.bench import clock
from tilewright.bench.surroundings import describe_gpu
from tilewright.bench.workload import Workload
from tilewright.bench.workload import load
from tilewright.cutile.targets import Target
from tilewright.cutile.targets import select
from tilewright.model.measurement import OWN

_SEED = 0
_LEAST_LIMIT, _LIMIT = 10.0, 60.0  # seconds for one kernel
_PATIENCE = 4  # times what the first kernel took, that another may take: one that takes longer spills
Reply = dict[str, Any]


def main() -> None:
    """Read the set-up and then requests from stdin, a line each; write a line for each to stdout."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the modules print must not end up between the replies

    def say(reply: Reply) -> None:
        print(json.dumps(reply), file=replies)

    setup = json.loads(sys.stdin.readline())
    sys.path[:0] = setup["paths"]
    answers = Compiler(setup) if setup["target"] else Timer(setup)
    say(answers.ready())
    for line in sys.stdin:
        request = json.loads(line)
        try:
            say(getattr(answers, request.pop("do"))(**request))
        except (Exception, SystemExit) as error:
            say({"error": describe_error(error)})
            if not setup["target"]:
                torch.cuda.synchronize()  # raises where the GPU has become unusable, which ends this process


class Workbench:
    """An operator with its benchmark, whose kernel file is replaced by candidates."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self.workload: Workload = load(**setup["operator"])
        self._name = setup["kernel"]["module"]
        self._path = setup["kernel"]["path"]
        self._test = setup["test"]
        self._dtypes = {str(dtype).removeprefix("torch."): dtype for dtype in self.workload.dtypes}

    def use(self, text: str) -> None:
        """Import a candidate as if it were in the file: line by line what it compiles to is the same."""
        linecache.cache[self._path] = (len(text), None, text.splitlines(keepends=True), self._path)
        module = ModuleType(self._name)
        module.__file__ = self._path
        module.__package__ = self._name.rpartition(".")[0]
        sys.modules[self._name] = module
        exec(compile(text, self._path, "exec"), vars(module))  # registers what it implements

    def call(self, size: list[int], dtype: str, device: str = "cuda") -> tuple[Callable[[], Any], dict[str, Any]]:
        """The operator on the inputs of a size, and these."""
        torch.manual_seed(_SEED)
        kwargs = self.workload.inputs(*size, self._dtypes[dtype], device)
        return lambda: self.workload.function(**kwargs, backend=OWN), kwargs

    def cases(self, dtype: str) -> list[dict[str, Any]]:
        """Inputs of the operator's tests on their aligned and ragged shapes."""
        found = [each for each in vars(importlib.import_module(self._test)).values() if hasattr(each, "inputs")]
        shapes = [(each, shape) for each in found for shape in (*each._aligned, *each._ragged)]
        return [each.inputs(shape, self._dtypes[dtype]) for each, shape in shapes]


class Compiler:
    """Compiles candidates for one architecture."""

    def __init__(self, setup: dict[str, Any]) -> None:
        (target,) = select(setup["target"])
        multiprocessors = setup["multiprocessors"] or target.multiprocessors
        self._target: Target = replace(target, multiprocessors=multiprocessors)
        self._recorder = Recorder()
        ct.launch = self._recorder.launch
        StandIn(self._target).install()
        self._bench = Workbench(setup)
        self._first = 0.0  # seconds that the first kernel took

    def ready(self) -> Reply:
        """What the benchmark measures."""
        workload = self._bench.workload
        itemsizes = {str(dtype).removeprefix("torch."): dtype.itemsize for dtype in workload.dtypes}
        return {"names": workload.names, "sizes": [list(size) for size in workload.sizes], "dtypes": itemsizes}

    def launch(self, text: str, sizes: list[list[int]], dtype: str) -> Reply:
        """For each size what is launched, before it is compiled."""
        return {"launches": [_digest(map(_describe, launches)) for launches in self._launches(text, sizes, dtype)]}

    def compile(self, text: str, sizes: list[list[int]], dtype: str) -> Reply:
        """For each size what is launched and what it comes to, and the most bytes that a kernel spills."""
        described, keys, spilled = [], [], 0
        for launches in self._launches(text, sizes, dtype):
            parts = []
            for launch in launches:
                part, spills = self._compile(launch)
                parts.append(part)
                spilled = max(spilled, spills)
            described.append(_digest(map(_describe, launches)))
            keys.append(_digest(parts))
        return {"launches": described, "keys": keys, "spilled": spilled}

    def _launches(self, text: str, sizes: list[list[int]], dtype: str) -> list[list[Launch]]:
        self._bench.use(text)
        self._recorder.take()  # what a candidate launched before it failed
        found = []
        for size in sizes:
            with OnMeta():
                call, _ = self._bench.call(size, dtype)
                call()
            found.append(self._recorder.take())
        return found

    def _compile(self, launch: Launch) -> tuple[Any, int]:
        signature = launch.signature
        limit = max(_LEAST_LIMIT, _PATIENCE * self._first) if self._first else _LIMIT
        begun = time.perf_counter()
        cubin = export_cubin(launch.kernel, signature, self._target, limit)
        self._first = self._first or time.perf_counter() - begun
        resources = read_resources(cubin)[signature.symbol]
        refusal = beyond_limit(resources, self._target)
        if refusal:
            raise ValueError(refusal)
        code = hashlib.sha256(read_code(cubin)).hexdigest()
        return (launch.grid, _scalars(launch), resources, code), resources.spilled_bytes


def _describe(launch: Launch) -> Any:
    return launch.signature.symbol, launch.hints, launch.grid, _scalars(launch)


def _scalars(launch: Launch) -> list[Any]:
    return [each for each in launch.arguments if not isinstance(each, torch.Tensor)]


def _digest(parts: Iterable[Any]) -> str:
    return hashlib.sha256(repr(list(parts)).encode()).hexdigest()[:16]


class Timer:
    """Times and checks candidates on the GPU."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self._bench = Workbench(setup)
        self._expected: dict[Any, tuple[Callable[[], Any], Any]] = {}

    def ready(self) -> Reply:
        """Which GPU it is."""
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        return {**describe_gpu(), "multiprocessors": properties.multi_processor_count}

    def time(self, text: str, size: list[int], dtype: str, milliseconds: int) -> Reply:
        """Time of a candidate whose result is right."""
        self._bench.use(text)
        call, expected = self._expect(tuple(size), dtype)
        self._bench.workload.check(call(), expected)
        return {"milliseconds": asdict(clock.measure(call, milliseconds))}

    def _expect(self, size: tuple[int, ...], dtype: str) -> tuple[Callable[[], Any], Any]:
        """The operator on the inputs of a size, and PyTorch's result; they are kept while memory is plentiful."""
        if (size, dtype) not in self._expected:
            free, total = torch.cuda.mem_get_info()
            if free < total // 2:
                self._expected.clear()
            call, kwargs = self._bench.call(list(size), dtype)
            self._expected[size, dtype] = call, self._bench.workload.reference(**kwargs)
        return self._expected[size, dtype]

    def check(self, text: str, dtype: str) -> Reply:
        """Compare a candidate with PyTorch on shapes that the operator is tested with."""
        self._bench.use(text)
        for kwargs in self._bench.cases(dtype):
            found = self._bench.workload.function(**kwargs, backend=OWN)
            self._bench.workload.check(found, self._bench.workload.reference(**kwargs))
        return {}
