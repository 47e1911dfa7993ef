"""Say what is installed, and find the compiler `tileiras` where cuda-tile finds it, importing neither."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from pathlib import Path

INSTALL = "pip install 'cuda-tile[tileiras]>=1.5,<1.8'"
_PACKAGES = ("nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm")


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """The compiler that will be used."""

    path: Path
    version: str
    mismatch: str = ""  # why that of the pip packages is not used


def find_toolchain() -> Toolchain | None:
    """The compiler of the pip packages if their versions agree, else that of a CUDA toolkit."""
    versions = {name: installed for name in _PACKAGES if (installed := _version(name))}
    agree = len(versions) == len(_PACKAGES) and len({_minor(found) for found in versions.values()}) == 1
    mismatch = ""
    if agree:
        for folder in _pip_folders():
            if found := shutil.which("tileiras", path=str(folder)):
                return Toolchain(path=Path(found), version=versions[_PACKAGES[0]])
    elif versions:
        mismatch = "not one release: " + ", ".join(f"{name} {versions.get(name, 'missing')}" for name in _PACKAGES)
    for folder in _toolkit_folders():
        if found := shutil.which("tileiras", path=str(folder)):
            return Toolchain(path=Path(found), version=_ask_version(found), mismatch=mismatch)
    return None


def is_installed(module: str) -> bool:
    """Whether Python can import the module, without doing so."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the parent of a dotted name is missing
        return False


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _pip_folders() -> Iterator[Path]:
    spec = importlib.util.find_spec("nvidia.cu13") if is_installed("nvidia.cu13") else None
    for folder in (spec and spec.submodule_search_locations) or ():
        yield Path(folder, "bin")


def _toolkit_folders() -> Iterator[Path]:
    yield from map(Path, os.environ.get("PATH", "").split(os.pathsep))
    if home := os.environ.get("CUDA_HOME"):
        yield Path(home, "bin")
    toolkits = Path("/usr/local").glob("cuda*/bin")
    yield from sorted(
        toolkits, key=lambda folder: [int(n) for n in re.findall(r"\d+", folder.parent.name)], reverse=True
    )


def _ask_version(compiler: str) -> str:
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\bV(\d+(?:\.\d+)+)", done.stdout)
    return found[1] if found else "unknown"
