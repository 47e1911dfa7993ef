"""The options of pytest that run kernels on the CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FILE = """\
import pytest
import torch

HAS_GPU = torch.cuda.is_available()


@pytest.mark.skipif(not HAS_GPU, reason="no GPU")
@pytest.mark.parametrize("n", [1, 2])
def test_add(n):
    assert (torch.ones(n, device="cuda") + 1).is_cuda
    assert torch.cuda.get_device_name() == NAME
"""
CONFTEST = """\
import torch

NAME = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"


def pytest_collection_modifyitems(items):
    for item in items:
        item.module.NAME = NAME
"""


@pytest.fixture
def run(tmp_path: Path):
    """Run pytest on the file in a process of its own; returns its exit status and output."""
    (tmp_path / "test_add.py").write_text(FILE)
    (tmp_path / "conftest.py").write_text(CONFTEST)

    def run_pytest(*options: str, ini: str = "", **environment: str) -> tuple[int, str]:
        (tmp_path / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rs", *options]
        environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "COLUMNS": "200"} | environment
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run_pytest


def test_nothing_happens_without_the_options(run):
    status, output = run("-v")
    assert status == 0
    assert "2 skipped" in output
    assert "cuTile" not in output


def test_tests_run_on_the_cpu(run):
    status, output = run("-v", "--tile-device=interpret", "--tile-arch", "sm_100", "--tile-check")
    assert status == 0, output
    assert "2 passed" in output
    assert "cuTile kernels: interpreted on the CPU as on sm_100, with checks" in output


def test_device_of_the_settings(run):
    assert "2 passed" in run(ini="tile_device = auto")[1]
    assert "2 skipped" in run("--tile-device=cuda", ini="tile_device = auto")[1]


THREADS = """\
import os

import torch


def test_threads():
    assert torch.get_num_threads() * 2 <= max(2, os.cpu_count())
"""


def test_workers_of_xdist_have_the_device_and_share_the_cores(run, tmp_path, monkeypatch):
    pytest.importorskip("xdist")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    (tmp_path / "test_threads.py").write_text(THREADS)
    status, output = run("--tile-device=interpret", "-n2")
    assert status == 0, output
    assert "3 passed" in output


@pytest.mark.slow
def test_workers_of_xdist_have_the_threads_that_the_user_has_set(run, tmp_path):
    pytest.importorskip("xdist")
    (tmp_path / "test_threads.py").write_text(THREADS)
    status, _ = run("--tile-device=interpret", "-n2", "test_threads.py", OMP_NUM_THREADS=str(2 * os.cpu_count()))
    assert status == 1


def test_checks_without_the_interpreter_are_refused(run):
    for options in (("--tile-check",), ("--tile-check", "--tile-device=cuda")):
        status, output = run(*options)
        assert status == pytest.ExitCode.USAGE_ERROR
        assert "add --tile-device interpret" in output


def test_plugin_can_be_left_out(run):
    status, output = run("-p", "no:tilewright", "--tile-device=interpret")
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "unrecognized arguments: --tile-device" in output


def test_plugin_can_be_named_where_none_is_loaded_of_itself(run):
    _, output = run("-p", "tilewright", "--tile-device=interpret", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "2 passed" in output


@pytest.mark.parametrize(
    ("options", "ini", "message"),
    [
        (["--tile-device=gpu"], "", "argument --tile-device: invalid choice"),
        ([], "tile_device = gpu", "ERROR: tile_device is 'gpu'\nexpected one of auto, interpret, cuda\n"),
        (
            ["--tile-device=interpret", "--tile-arch=sm_9"],
            "",
            "ERROR: 'sm_9' is not an architecture\nexpected one of sm_80, ",
        ),
    ],
)
def test_wrong_usage(run, options, ini, message):
    status, output = run(*options, ini=ini)
    assert status == pytest.ExitCode.USAGE_ERROR
    assert message in output


@pytest.mark.parametrize("module", ["torch", "cuda.tile"])
def test_package_that_is_missing(run, tmp_path, module):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util\n"
        "find_spec = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name, *rest: None if name == {module!r} else find_spec(name, *rest)\n"
    )
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    status, output = run("--tile-device=auto", PYTHONPATH=path)
    assert status == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {module} is not installed\npip install " in output


LAUNCHES = """\
import cuda.tile as ct
import torch


@ct.kernel
def copy(X, Out, TILE: ct.Constant[int]):
    ct.store(Out, (0,), ct.load(X, (0,), (TILE,)))


def launch(x, size):
    ct.launch(torch.cuda.current_stream(), (1,), copy, (x, torch.zeros(16, device="cuda"), size))


def test_check():
    launch(torch.zeros(4, device="cuda"), 8)


def test_compiler():
    launch(torch.zeros(4, device="cuda"), 3)
"""


def test_failures_show_no_frames_of_the_interpreter_and_the_compiler(run, tmp_path):
    (tmp_path / "test_launches.py").write_text(LAUNCHES)
    _, output = run("--tile-device=interpret", "--tile-check", "test_launches.py")
    assert "result that depends on padding" in output
    assert "is not a power of two" in output
    assert "test_launches.py:11: " in output
    assert "interpret/launch.py" not in output
    assert "cuda/tile/" not in output
    assert "interpret/launch.py" in run("--tile-device=interpret", "--full-trace", "test_launches.py")[1]


def test_plugin_imports_neither_torch_nor_the_interpreter():
    code = "import sys, tilewright.interpret.plugin; print({'torch', 'cuda', 'numpy'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
