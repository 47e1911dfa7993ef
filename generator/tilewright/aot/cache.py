"""Remember what the compiler made of an operator, for as long as nothing changes that it depends on.

An entry is found by a hash of the operator's files, of this package's, of the request and of the versions at work. Only
compilations in which nothing failed are kept: a time limit that was missed once may be met the next time.
"""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile

from platformdirs import user_cache_path

from tilewright.aot.dependencies import source_files
from tilewright.cutile.toolchain import Toolchain
from tilewright.model.kernel import CaptureFailure
from tilewright.model.kernel import Compilation
from tilewright.model.kernel import CompiledKernel
from tilewright.model.kernel import Resources
from tilewright.model.operator import Operator

VARIABLE = "TILEWRIGHT_CACHE_DIR"  # a folder, or one of OFF
OFF = ("", "0", "off", "none")
_ENTRIES = 1000  # the oldest make room
_DISTRIBUTIONS = ("tilewright", "cuda-tile", "torch", "tilegym")


class Cache:
    """Compilations of earlier runs, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, key: str) -> Compilation | None:
        """The compilation with this key; an entry that cannot be read does not exist."""
        try:
            document = json.loads((self._folder / f"{key}.json").read_text(encoding="utf-8"))
            kernels = (CompiledKernel(**k | {"resources": Resources(**k["resources"])}) for k in document["kernels"])
            return Compilation(
                op=document["op"],
                kernels=tuple(kernels),
                failures=tuple(CaptureFailure(**failure) for failure in document["failures"]),
                unreached=tuple(document["unreached"]),
                cached=True,
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, key: str, compilation: Compilation) -> None:
        """Keep a compilation if every kernel was compiled; a folder that cannot be written costs only time."""
        complete = compilation.kernels and compilation.failures == compilation.refused
        if not complete or any(kernel.error for kernel in compilation.kernels):
            return
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile("w", dir=self._folder, suffix=".tmp", delete=False, encoding="utf-8") as file:
                json.dump(asdict(replace(compilation, seconds=0.0)), file)
            Path(file.name).replace(self._folder / f"{key}.json")
            entries = sorted(self._folder.glob("*.json"), key=lambda entry: entry.stat().st_mtime, reverse=True)
            for entry in entries[_ENTRIES:]:
                entry.unlink(missing_ok=True)


def user_cache() -> Cache | None:
    """The cache of this user, or the one that TILEWRIGHT_CACHE_DIR names; None where that turns it off."""
    named = os.environ.get(VARIABLE)
    if named is None:
        return Cache(user_cache_path("tilewright") / "compilations")
    return None if named.lower() in OFF else Cache(Path(named))


def fingerprint(operator: Operator, request: Mapping[str, object], toolchain: Toolchain) -> str | None:
    """Key of the compilation that this request leads to; None if the operator's files cannot be read."""
    try:
        files = {path.relative_to(operator.host.root): path.read_bytes() for path in source_files(operator)}
    except (ImportError, SyntaxError, OSError, ValueError):
        return None
    parts = {
        "request": {**request, "root": str(operator.host.root)},  # results name files
        "versions": {name: _version(name) for name in _DISTRIBUTIONS} | {"python": sys.version},
        "compiler": [str(toolchain.path), toolchain.version],
        "environment": {name: value for name, value in os.environ.items() if name.startswith("CUDA_TILE_")},
        "tilewright": _own_sources(),
        "files": {str(path): _digest(content) for path, content in files.items()},
    }
    return _digest(json.dumps(parts, sort_keys=True).encode())


@cache
def _own_sources() -> str:
    """Digest of the code that compiles: in a checkout it changes while the version stays."""
    package = Path(__file__).parents[1]
    sources = sorted(path for folder in ("aot", "cutile") for path in (package / folder).glob("*.py"))
    return _digest(b"\0".join(path.read_bytes() for path in sources))


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
