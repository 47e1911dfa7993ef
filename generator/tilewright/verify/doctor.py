"""What this machine has of what the commands need, and the command that mends what it has not."""

import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from pathlib import Path

from tilewright import __version__
from tilewright.cutile.targets import TARGETS
from tilewright.cutile.toolchain import INSTALL
from tilewright.cutile.toolchain import find_toolchain
from tilewright.errors import MissingError
from tilewright.render import locate
from tilewright.verify.device import driver_version
from tilewright.verify.device import find_gpus

_DRIVER = (13, 0)  # oldest CUDA version of a driver that launches tile kernels


class State(StrEnum):
    """What can be said of one thing."""

    PRESENT = "present"
    MISSING = "missing"
    UNFIT = "unfit"  # there, but not one that works


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that the commands use."""

    name: str
    state: State
    version: str = ""
    detail: str = ""
    mend: str = ""  # command that mends it
    needed_for: str = ""


def examine() -> Iterator[Finding]:
    """Everything, what all commands need first."""
    yield _python()
    yield _program("git", "update an operator", "apt-get install git, or see https://git-scm.com/downloads")
    yield _package("copier", (9, 19), "make an operator")
    yield _template()
    yield _torch()
    yield _package("cuda-tile", (1, 5), "compile and run kernels", INSTALL, below=(1, 8))
    yield _tileiras()
    yield _package("triton", (3, 2), "benchmarks")
    yield _package("pytest", (8,), "tests")
    yield _package("ruff", (0, 9), "lint")
    yield _driver()
    yield from _gpus()


def _python() -> Finding:
    fit = sys.version_info >= (3, 11)
    return Finding(
        name="python",
        state=State.PRESENT if fit else State.UNFIT,
        version=platform.python_version(),
        detail=sys.executable,
        mend="" if fit else "install Python 3.11 or newer and make the environment anew",
        needed_for="everything",
    )


def _program(name: str, needed_for: str, mend: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(name=name, state=State.MISSING, mend=mend, needed_for=needed_for)
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)+", done.stdout)
    return Finding(
        name=name, state=State.PRESENT, version=found[0] if found else "", detail=path, needed_for=needed_for
    )


def _package(
    name: str, least: tuple[int, ...], needed_for: str, mend: str = "", below: tuple[int, ...] = ()
) -> Finding:
    wanted = f"{name}>={_dotted(least)}" + (f",<{_dotted(below)}" if below else "")
    mend = mend or f"pip install '{wanted}'"
    try:
        installed = version(name)
    except PackageNotFoundError:
        return Finding(name=name, state=State.MISSING, mend=mend, needed_for=needed_for)
    numbers = _numbers(installed)
    if numbers < least or (below and numbers >= below):
        return Finding(
            name=name, state=State.UNFIT, version=installed, detail=f"needs {wanted}", mend=mend, needed_for=needed_for
        )
    return Finding(name=name, state=State.PRESENT, version=installed, needed_for=needed_for)


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def _template() -> Finding:
    try:
        source = locate()
    except MissingError as error:
        return Finding(
            name="template", state=State.MISSING, detail=error.what, mend=error.hint, needed_for="make an operator"
        )
    return Finding(
        name="template",
        state=State.PRESENT,
        version=__version__,
        detail=str(source.root),
        needed_for="make an operator",
    )


def _torch() -> Finding:
    finding = _package("torch", (2, 6), "compile, test and time kernels")
    if finding.state is not State.PRESENT:
        return finding
    cuda = _cuda_of_torch()
    return Finding(
        name="torch",
        state=State.PRESENT,
        version=finding.version,
        detail=f"for CUDA {cuda}" if cuda else "without CUDA: enough to compile, not to run",
        needed_for=finding.needed_for,
    )


def _cuda_of_torch() -> str | None:
    """Read from the file that says so: importing torch takes a second."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).with_name("version.py")
    found = re.search(r"^cuda\b.*=\s*'([\d.]+)'", file.read_text(encoding="utf-8"), re.M) if file.is_file() else None
    return found[1] if found else None


def _tileiras() -> Finding:
    needed_for = "compile kernels"
    toolchain = find_toolchain()
    if toolchain is None:
        return Finding(name="tileiras", state=State.MISSING, mend=INSTALL, needed_for=needed_for)
    unfit = bool(toolchain.mismatch)
    return Finding(
        name="tileiras",
        state=State.UNFIT if unfit else State.PRESENT,
        version=toolchain.version,
        detail=f"{toolchain.path}" + (f" is used: the packages are {toolchain.mismatch}" if unfit else ""),
        mend=f"pip install --upgrade --force-reinstall {INSTALL.removeprefix('pip install ')}" if unfit else "",
        needed_for=needed_for,
    )


def _driver() -> Finding:
    found = driver_version()
    mend = f"install an NVIDIA driver for CUDA {_dotted(_DRIVER)} or newer: https://www.nvidia.com/drivers"
    if found is None:
        return Finding(name="driver", state=State.MISSING, mend=mend, needed_for="run kernels")
    fit = found >= _DRIVER
    return Finding(
        name="driver",
        state=State.PRESENT if fit else State.UNFIT,
        version=f"CUDA {_dotted(found)}",
        mend="" if fit else mend,
        needed_for="run kernels",
    )


def _gpus() -> Iterator[Finding]:
    devices = find_gpus()
    if not devices.gpus:
        has_driver = devices.why_none != "no GPU"
        mend = (
            "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu130"
            if has_driver
            else ""
        )
        yield Finding(name="gpu", state=State.MISSING, detail=devices.why_none, mend=mend, needed_for="run kernels")
    known = {target.name for target in TARGETS}
    for gpu in devices.gpus:
        fit = gpu.arch in known
        yield Finding(
            name="gpu",
            state=State.PRESENT if fit else State.UNFIT,
            version=gpu.arch,
            detail=gpu.name if fit else f"{gpu.name}: cuTile compiles for {', '.join(sorted(known))}",
            needed_for="run kernels",
        )
