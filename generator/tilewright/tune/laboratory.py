"""Compile candidates side by side, time them one at a time, and remember both."""

import os
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from queue import LifoQueue
from typing import Any

from tilewright.bench.child import Child
from tilewright.bench.run import names
from tilewright.model.operator import Operator
from tilewright.tune.guard import Guard
from tilewright.tune.guard import Reply
from tilewright.tune.notebook import Notebook

COMMAND = ("-m", "tilewright.tune")
PATIENCE = 90.0  # seconds for one candidate on one size, or for its compilation
_JOBS = 8  # processes that compile, each with a PyTorch of its own in memory
Size = Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What a candidate comes to on each size, or why it cannot be used."""

    launches: tuple[str, ...] = ()  # equal where the same kernels are launched in the same way
    keys: tuple[str, ...] = ()  # equal where these come to the same code
    spilled: int = 0  # bytes for each thread, in the worst of the kernels
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Timed:
    """Median time of a candidate on one size, or why there is none."""

    milliseconds: float | None = None
    error: str = ""


class Laboratory:
    """The child processes for one operator and architecture."""

    def __init__(
        self,
        operator: Operator,
        arch: str = "",
        *,
        jobs: int | None = None,
        patience: float = PATIENCE,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.notebook: Notebook | None = None
        self._arch = arch  # empty until the GPU that is here is asked for
        self._setup = _setup(operator)
        self._folder = operator.host.root
        self._command = command
        self._patience = patience
        self._jobs = jobs or min(_JOBS, os.cpu_count() or 1)
        self._timer = self._guard({"target": None})
        self._guards = [self._guard({}, CUDA_VISIBLE_DEVICES="") for _ in range(self._jobs)]
        self._pool = ThreadPoolExecutor(self._jobs)
        self._asked: dict[Any, Future[Reply]] = {}
        self._compilers: LifoQueue[Guard] = LifoQueue()
        for guard in self._guards:
            self._compilers.put(guard)
        self._multiprocessors = 0

    def __enter__(self) -> "Laboratory":
        if not self._arch:  # all of them will be needed, and most of their start is imports
            for guard in (self._timer, *self._guards):
                guard.warm_up()
        return self

    def __exit__(self, *_: object) -> None:
        self.notebook = None  # what is under way is no result
        self._pool.shutdown(wait=False, cancel_futures=True)
        for guard in (self._timer, *self._guards):
            guard.end()

    def gpu(self) -> dict[str, Any]:
        """The GPU that is measured on; from now on candidates are compiled for it."""
        self._arch, self._multiprocessors = self._timer.ready["arch"], self._timer.ready["multiprocessors"]
        return self._timer.ready

    def benchmark(self) -> dict[str, Any]:
        """Names of the sizes, sizes, and the bytes of an element of each dtype."""
        for guard in self._guards:
            guard.setup |= {"target": self._arch, "multiprocessors": self._multiprocessors}
        return self._guards[-1].ready  # the one that is asked first

    def launches(self, texts: Sequence[str], sizes: Sequence[Size], dtype: str) -> list[tuple[str, ...]]:
        """What each candidate launches on each size, which is known without compiling it; nothing if it fails."""
        self.benchmark()
        futures = [self._begin("launch", text, sizes, dtype) for text in texts]
        return [tuple(future.result().get("launches", ())) for future in futures]

    def compile(self, texts: Sequence[str], sizes: Sequence[Size], dtype: str) -> Iterator[Compiled]:
        """What each candidate comes to, as soon as it is known; all of them are begun at once."""
        self.benchmark()
        futures = [self._begin("compile", text, sizes, dtype) for text in texts]
        return (_compiled(future.result()) for future in futures)

    def prepare(self, texts: Iterable[str], sizes: Sequence[Size], dtype: str) -> None:
        """Begin with candidates that may be asked for, as far as processes are idle, while others are timed."""
        idle = self._jobs - sum(not future.done() for future in self._asked.values())
        new = (text for text in texts if _question("compile", text, sizes, dtype) not in self._asked)
        for text in islice(new, max(0, idle)):
            self._begin("compile", text, sizes, dtype)

    def _begin(self, do: str, text: str, sizes: Sequence[Size], dtype: str) -> Future[Reply]:
        question = _question(do, text, sizes, dtype)
        if question not in self._asked:
            self._asked[question] = self._pool.submit(self._ask, do, text, sizes, dtype)
        return self._asked[question]

    def _ask(self, do: str, text: str, sizes: Sequence[Size], dtype: str) -> Reply:
        about = (do, self._arch, text, sizes, dtype)
        found = self._find(*about)
        if found is None:
            compiler = self._compilers.get()
            try:
                found = compiler.ask(do=do, text=text, sizes=sizes, dtype=dtype)
            finally:
                self._compilers.put(compiler)
            self._keep(found, *about)
        return found

    def time(self, text: str, key: str, size: Size, dtype: str, milliseconds: int) -> Timed:
        """How long a candidate takes that comes to `key`, measured for so many milliseconds, after a check."""
        about = ("time", key, size, dtype, milliseconds)
        found = self._find(*about)
        if found is None:
            found = self._timer.ask(do="time", text=text, size=size, dtype=dtype, milliseconds=milliseconds)
            self._keep(found, *about)
        return Timed(milliseconds=found.get("milliseconds", {}).get("median"), error=found.get("error", ""))

    def check(self, text: str, dtype: str) -> str:
        """Why a candidate is wrong on the shapes of the operator's tests, in a process that has seen nothing else."""
        self._timer.end()
        return str(self._timer.ask(do="check", text=text, dtype=dtype).get("error", ""))

    def _find(self, *key: object) -> Reply | None:
        return self.notebook.find(*key) if self.notebook else None

    def _keep(self, found: Any, *key: object) -> None:
        if self.notebook:
            self.notebook.keep(found, *key)

    def _guard(self, setup: dict[str, Any], **environment: str) -> Guard:
        start = partial(Child, self._command, folder=self._folder, environment=environment)
        return Guard(start, self._setup | setup, patience=self._patience)


def _question(do: str, text: str, sizes: Sequence[Size], dtype: str) -> Any:
    return do, text, tuple(map(tuple, sizes)), dtype


def _compiled(reply: Reply) -> Compiled:
    return Compiled(
        launches=tuple(reply.get("launches", ())),
        keys=tuple(reply.get("keys", ())),
        spilled=reply.get("spilled", 0),
        error=reply.get("error", ""),
    )


def _setup(operator: Operator) -> dict[str, Any]:
    """What a child has to know of the operator."""
    return {
        "paths": [str(path) for path in operator.import_paths],
        "operator": names(operator),
        "kernel": {"module": operator.module(operator.kernel), "path": str(operator.path(operator.kernel))},
        "test": operator.module(operator.test),
    }
