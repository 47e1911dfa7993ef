"""The GPUs that PyTorch can use here."""

import ctypes
import json
import subprocess
import sys
from dataclasses import dataclass

from tilewright.errors import MissingError

_PROBE = """
import json, torch
found = []
if torch.cuda.is_available():
    for i in range(torch.cuda.device_count()):
        found.append([torch.cuda.get_device_name(i), "sm_%d%d" % torch.cuda.get_device_capability(i)])
print()
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda, "gpus": found}))
"""


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU."""

    name: str
    arch: str


@dataclass(frozen=True, kw_only=True)
class Devices:
    """The GPUs, or why there are none."""

    gpus: tuple[Gpu, ...] = ()
    why_none: str = ""


def driver_version() -> tuple[int, int] | None:
    """CUDA version that the installed driver supports, or None without one."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        version = ctypes.c_int()
        if driver.cuDriverGetVersion(ctypes.byref(version)):
            return None
    except (OSError, AttributeError):
        return None
    return version.value // 1000, version.value % 1000 // 10


def find_gpus() -> Devices:
    """Ask PyTorch, in a child process; not at all where there is no driver."""
    if driver_version() is None:
        return Devices(why_none="no GPU")
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, check=False)
    if done.returncode:
        return Devices(why_none="no GPU that PyTorch can use: import torch fails")
    found = json.loads(done.stdout.splitlines()[-1])
    if found["cuda"] is None:
        return Devices(why_none=f"no GPU that PyTorch can use: torch {found['version']} was built without CUDA")
    if not found["gpus"]:
        return Devices(why_none="no GPU")
    return Devices(gpus=tuple(Gpu(name=name, arch=arch) for name, arch in found["gpus"]))


def require_gpu(purpose: str, *, otherwise: str) -> Devices:
    """The GPUs, of which there is one at least.

    Raises:
        MissingError: There is none.
    """
    devices = find_gpus()
    if not devices.gpus:
        raise MissingError(
            f"{devices.why_none} to {purpose}",
            expected="expected an NVIDIA GPU, with a driver, and a PyTorch that was built for it",
            hint=f"run this on a machine with one; {otherwise}",
        )
    return devices
