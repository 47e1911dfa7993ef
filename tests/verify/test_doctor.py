import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from tilewright.cutile.toolchain import Toolchain
from tilewright.verify import doctor
from tilewright.verify.device import Devices
from tilewright.verify.device import Gpu
from tilewright.verify.doctor import State
from tilewright.verify.doctor import examine


@pytest.fixture
def versions(monkeypatch):
    """Versions of installed packages; those that are not in it are not installed."""
    installed = {
        "copier": "9.19.1",
        "torch": "2.9.0",
        "cuda-tile": "1.7.0",
        "triton": "3.5",
        "pytest": "9",
        "ruff": "1.0",
    }

    def version(name):
        if name not in installed:
            raise PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(doctor, "version", version)
    return installed


@pytest.fixture
def machine(monkeypatch):
    def set_up(driver=None, gpus=(), why_none="no GPU", toolchain=None):
        monkeypatch.setattr(doctor, "driver_version", lambda: driver)
        monkeypatch.setattr(doctor, "find_gpus", lambda: Devices(gpus=gpus, why_none=why_none))
        monkeypatch.setattr(doctor, "find_toolchain", lambda: toolchain)
        return {finding.name: finding for finding in examine()}

    return set_up


def test_everything_asked_for_is_there(machine):
    names = "python git copier template torch cuda-tile tileiras triton pytest ruff driver gpu"
    assert list(machine()) == names.split()


def test_what_is_not_installed_is_missing_with_a_command(machine, versions):
    del versions["cuda-tile"]
    found = machine()["cuda-tile"]
    assert (found.state, found.mend) == (State.MISSING, "pip install 'cuda-tile[tileiras]>=1.5,<1.8'")


@pytest.mark.parametrize(("version", "state"), [("1.4.9", "unfit"), ("1.5.0", "present"), ("1.8.0", "unfit")])
def test_versions_that_fit(machine, versions, version, state):
    versions["cuda-tile"] = version
    assert machine()["cuda-tile"].state == state


def test_no_compiler(machine):
    assert machine()["tileiras"].state is State.MISSING


def test_compiler_whose_packages_disagree(machine, tmp_path):
    toolchain = Toolchain(path=tmp_path, version="13.3", mismatch="not one release: a 13.3, b 13.4")
    found = machine(toolchain=toolchain)["tileiras"]
    assert found.state is State.UNFIT
    assert "a 13.3, b 13.4" in found.detail
    assert found.mend.startswith("pip install --upgrade")


def test_no_driver(machine):
    assert machine()["driver"].state is State.MISSING


@pytest.mark.parametrize(("driver", "state"), [((12, 8), "unfit"), ((13, 0), "present"), ((13, 4), "present")])
def test_drivers_that_fit(machine, driver, state):
    assert machine(driver=driver)["driver"].state == state


def test_gpu_that_cutile_compiles_for(machine):
    found = machine(driver=(13, 0), gpus=(Gpu(name="NVIDIA H200", arch="sm_90"),))["gpu"]
    assert (found.state, found.version, found.detail) == (State.PRESENT, "sm_90", "NVIDIA H200")


def test_gpu_that_is_too_old(machine):
    found = machine(driver=(13, 0), gpus=(Gpu(name="Tesla T4", arch="sm_75"),))["gpu"]
    assert found.state is State.UNFIT


def test_torch_is_not_imported():
    script = "import sys; from tilewright.verify.doctor import examine; list(examine()); print('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr
