"""What a reader needs to repeat a run: GPU, driver, versions, date and command."""

import datetime
import shlex
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from pathlib import Path

from tilewright import __version__
from tilewright.model.measurement import Surroundings

_DISTRIBUTIONS = ("torch", "triton", "cuda-tile")
_OF_PEERS = {"tilegym": "tilegym", "liger": "liger-kernel"}  # distributions of peers that are not called as they are


def describe_gpu() -> dict[str, str]:
    """Name, architecture and driver of the current GPU, as JSON takes them."""
    import torch

    major, minor = torch.cuda.get_device_capability()
    return {"gpu": torch.cuda.get_device_name(), "arch": f"sm_{major}{minor}", "driver": _driver()}


def _driver() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def surroundings(*, gpu: str, arch: str, driver: str, contestants: Iterable[str]) -> Surroundings:
    """The surroundings of this run."""
    peers = {_OF_PEERS[name] for each in contestants if (name := each.partition("_")[0]) in _OF_PEERS}
    return Surroundings(
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        gpu=gpu,
        arch=arch,
        driver=driver,
        versions=versions(peers),
    )


def versions(further: Iterable[str] = ()) -> dict[str, str]:
    """Versions of what times depend on; empty where it is not installed."""
    return {"tilewright": __version__} | {name: _version(name) for name in (*_DISTRIBUTIONS, *sorted(further))}


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
