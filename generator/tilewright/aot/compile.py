"""Compile every kernel of an operator for every architecture, dtype and kind of signature, in child processes."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import IO
from typing import Any

from tilewright.aot.cache import Cache
from tilewright.aot.cache import fingerprint
from tilewright.cutile.targets import TARGETS
from tilewright.cutile.targets import Target
from tilewright.cutile.toolchain import INSTALL
from tilewright.cutile.toolchain import find_toolchain
from tilewright.cutile.toolchain import is_installed
from tilewright.errors import MissingError
from tilewright.errors import UsageError
from tilewright.model.kernel import CaptureFailure
from tilewright.model.kernel import Compilation
from tilewright.model.kernel import CompiledKernel
from tilewright.model.kernel import Resources
from tilewright.model.operator import Operator

IMPORT_LIMIT = 120  # seconds for the operator's package and tests, torch included
_INSTALL_IT = f"install it: {INSTALL}"
Progress = Callable[[int, int], None]  # processes done, processes in all


def compile_operator(
    operator: Operator,
    *,
    targets: Sequence[Target] = TARGETS,
    dtypes: Sequence[str] = (),
    jobs: int | None = None,
    time_limit: float = 60.0,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> Compilation:
    """Compile the operator; what the compiler refuses, crashes on or takes too long for is in the result.

    With a cache, what it remembers of the same files, versions and request is returned at once.
    """
    for module in ("torch", "cuda.tile"):
        if not is_installed(module):
            raise MissingError(f"{module} is not installed, so {operator.name} cannot be compiled", hint=_INSTALL_IT)
    request = {
        "operator": {
            "paths": [str(path) for path in operator.import_paths],
            "package": operator.host.operators_module,
            "stub": operator.module(operator.stub),
            "name": operator.function,
            "kernel": operator.module(operator.kernel),
            "test": operator.module(operator.test),
        },
        "targets": [target.name for target in targets],
        "dtypes": list(dtypes),
    }
    toolchain = find_toolchain() if cache else None
    key = fingerprint(operator, request, toolchain) if toolchain else None
    if cache and key and (remembered := cache.find(key)):
        return remembered
    results = _Results(operator.name, dtypes, progress)
    limits = {"jobs": jobs or os.cpu_count() or 1, "time_limit": time_limit, "import_limit": IMPORT_LIMIT}
    with closing(_events(operator, request | limits)) as events:
        for event in events:
            results.add(event)
    compilation = results.compilation([target.name for target in targets])
    if cache and key:
        cache.keep(key, compilation)
    return compilation


class _Results:
    """What the child process has said so far."""

    def __init__(self, op: str, dtypes: Sequence[str], progress: Progress | None) -> None:
        self._op = op
        self._dtypes = dtypes
        self._progress = progress
        self._start = time.perf_counter()
        self._kernels: dict[tuple[str, ...], CompiledKernel] = {}
        self._failures: list[CaptureFailure] = []
        self._defined: list[str] = []
        self._done = 0
        self._total = 0

    def add(self, event: dict[str, Any]) -> None:
        """Take one event in."""
        match event.pop("event"):
            case "start":
                self._total = event["units"]
                self._defined = event["kernels"]
                self._check_dtypes(event["dtypes"])
            case "kernel":
                resources = event.pop("resources")
                kernel = CompiledKernel(**event, resources=resources and Resources(**resources))
                self._kernels.setdefault((kernel.arch, kernel.symbol, kernel.hints), kernel)
            case "failure":
                self._failures.append(CaptureFailure(**event))
            case "broken":
                self._failures.append(CaptureFailure(arch="", dtype="", error=event["error"]))
            case "no compiler":
                raise MissingError(event["error"], hint=_INSTALL_IT)
            case "unit":
                self._done += 1
        if self._progress:
            self._progress(self._done, self._total)

    def _check_dtypes(self, known: Sequence[str]) -> None:
        unknown = [dtype for dtype in self._dtypes if dtype not in known]
        if unknown:
            raise UsageError(
                f"the tests of {self._op} do not cover {', '.join(unknown)}",
                expected=f"expected one or more of {', '.join(known)}",
            )

    def compilation(self, archs: list[str]) -> Compilation:
        """All of it, in a stable order."""
        kernels = sorted(
            self._kernels.values(), key=lambda k: (k.kernel, archs.index(k.arch), k.dtype, k.signature, k.symbol)
        )
        failures = sorted(self._failures, key=lambda f: (archs.index(f.arch) if f.arch else -1, f.dtype))
        found = Compilation(
            op=self._op,
            kernels=tuple(kernels),
            failures=tuple(failures),
            seconds=round(time.perf_counter() - self._start, 3),
        )
        if self._dtypes or found.failures != found.refused:
            return found  # that a kernel is not reached says nothing
        launched = {kernel.kernel for kernel in kernels}
        return replace(found, unreached=tuple(name for name in self._defined if name not in launched))


def _events(operator: Operator, request: dict[str, Any]) -> Generator[dict[str, Any]]:
    # No GPU is used, and none may be woken up; an autotuner has nothing to measure.
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "TILEGYM_DISABLE_AUTOTUNE": "1"}
    command = [sys.executable, "-P", "-m", "tilewright.aot"]
    with (
        tempfile.TemporaryFile("w+") as stderr,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=operator.host.root,
            env=environment,
        ) as server,
    ):
        assert server.stdin
        assert server.stdout
        try:
            with server.stdin:
                json.dump(request, server.stdin)
            yield from map(json.loads, server.stdout)
        except BaseException:
            server.terminate()  # it ends its workers
            raise
        code = server.wait()
        if code == -signal.SIGALRM:
            yield {"event": "broken", "error": f"importing it took longer than {IMPORT_LIMIT} s"}
        elif code < 0:
            yield {"event": "broken", "error": f"the compiling process was ended by {signal.Signals(-code).name}"}
        elif code:
            yield {"event": "broken", "error": _last_line(stderr) or f"the compiling process exited with {code}"}


def _last_line(stream: IO[str]) -> str:
    stream.seek(0)
    lines = stream.read().split("\n")
    return next((line for line in reversed(lines) if line.strip()), "")
