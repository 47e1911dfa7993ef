"""The options of pytest that run kernels on the CPU."""

import gc
import importlib.util
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cuda.tile")

from tilewright.interpret import enabled  # noqa: E402

pytest_plugins = ["pytester"]

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


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Import what the plugin does: pytester has modules forgotten, and those of PyTorch can be imported once only."""
    with enabled(check=True):
        torch.ones(1, device="cuda")


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run pytest on the file in this process, as on a machine without a GPU; returns its exit status and output."""
    pytester.makepyfile(test_add=FILE)
    pytester.makeconftest(CONFTEST)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("COLUMNS", "200")

    def run_pytest(*options: str, ini: str = "") -> tuple[int, str]:
        pytester.makefile(".ini", pytest=f"[pytest]\n{ini}\n")
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-q", "-rs", *options)
        return result.ret, "\n".join(result.outlines + result.errlines) + "\n"

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


@pytest.fixture
def nothing_frozen():
    """As if these tests had left it to the plugin."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("nothing_frozen")
@pytest.mark.parametrize(("options", "frozen"), [(["--tile-device=interpret"], True), ([], False)])
def test_what_is_loaded_before_the_first_test_is_never_searched_for_garbage(run, pytester, options, frozen):
    pytester.makepyfile(
        test_garbage="import gc\n\n\ndef test_frozen():\n    assert bool(gc.get_freeze_count()) is FROZEN\n"
    )
    pytester.makeconftest(f"import builtins\n\nbuiltins.FROZEN = {frozen}\n")
    status, output = run(*options, "test_garbage.py")
    assert status == 0, output
    assert gc.get_freeze_count() == 0


THREADS = """\
import torch


def test_threads():
    assert torch.get_num_threads() == EXPECTED
"""


@pytest.fixture
def six_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(6)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("said", "threads"), [(None, 3), ("6", 6)])
def test_workers_share_the_threads_unless_the_user_has_said_how_many(
    run, pytester, monkeypatch, six_threads, said, threads
):
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if said:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    pytester.makepyfile(test_threads=THREADS.replace("EXPECTED", str(threads)))
    status, output = run("--tile-device=interpret", "test_threads.py")
    assert status == 0, output
    assert torch.get_num_threads() == 6


def test_workers_of_xdist_have_the_device(run, monkeypatch):
    pytest.importorskip("xdist")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    status, output = run("--tile-device=interpret", "-n1")
    assert status == 0, output
    assert "2 passed" in output


@pytest.mark.slow
def test_workers_of_xdist_share_the_cores(run, pytester, monkeypatch):
    pytest.importorskip("xdist")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    pytester.makepyfile(test_threads=THREADS.replace("== EXPECTED", f"<= {max(1, os.cpu_count() // 2)}"))
    status, output = run("--tile-device=interpret", "-n2", "test_threads.py")
    assert status == 0, output


def test_auto_takes_the_gpu_if_there_is_one_unless_kernels_are_checked(run, pytester, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    pytester.makeconftest("")
    pytester.makepyfile(test_add="def test_nothing(): pass")
    assert "cuTile kernels: cuda" in run("-v", "--tile-device=auto")[1]
    assert "cuTile kernels: interpreted on the CPU" in run("-v", "--tile-device=auto", "--tile-check")[1]


def test_checks_without_the_interpreter_are_refused(run):
    for options in (("--tile-check",), ("--tile-check", "--tile-device=cuda")):
        status, output = run(*options)
        assert status == pytest.ExitCode.USAGE_ERROR
        assert "add --tile-device interpret" in output


def test_plugin_can_be_left_out(run):
    status, output = run("-p", "no:tilewright", "--tile-device=interpret")
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "unrecognized arguments: --tile-device" in output


def test_plugin_can_be_named_where_none_is_loaded_of_itself(run, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    _, output = run("-p", "tilewright", "--tile-device=interpret")
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
def test_package_that_is_missing(run, monkeypatch, module):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == module else find_spec(name, *rest)
    )
    status, output = run("--tile-device=auto")
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


def test_failures_show_no_frames_of_the_interpreter_and_the_compiler(run, pytester):
    pytester.makepyfile(test_launches=LAUNCHES)
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
