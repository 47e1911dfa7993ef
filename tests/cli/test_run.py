"""`tilewright run` runs a script with its kernels on the CPU."""

import pytest

from tilewright.cli.exits import Exit

pytest.importorskip("cuda.tile")

COPY_UNWRITTEN = """\
import cuda.tile as ct
import torch


@ct.kernel
def copy(X, Y):
    ct.store(Y, (0,), ct.load(X, (0,), (16,)))


x, y = torch.empty(16, device="cuda"), torch.zeros(16, device="cuda")
ct.launch(torch.cuda.current_stream(), (1,), copy, (x, y))
"""


@pytest.fixture
def script(here):
    (here / "show.py").write_text(
        "import sys, torch\nprint(sys.argv, torch.zeros(1, device='cuda').device, torch.cuda.get_device_name())\n"
    )


@pytest.mark.usefixtures("script")
def test_options_after_the_script_are_its_own(tilewright):
    result = tilewright("run", "--arch", "sm_100", "--check", "show.py", "--arch", "x", "--debug", "-m")
    assert result.exit_code == 0, result.output
    assert result.stdout == "['show.py', '--arch', 'x', '--debug', '-m'] cuda:0 sm_100 (tilewright interpreter)\n"


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize("arguments", [["--debug", "run"], ["run", "--debug"], ["run", "--arch", "sm_90", "--debug"]])
def test_debug_before_the_script_is_of_tilewright(tilewright, arguments):
    assert tilewright(*arguments, "show.py").stdout.startswith("['show.py'] ")
    assert "Traceback" in tilewright(*arguments, "nowhere.py").stderr


@pytest.mark.usefixtures("script")
def test_module(tilewright):
    assert tilewright("run", "-m", "show", "a").stdout.partition("show.py")[2].startswith("', 'a'] cuda:0")


def test_script_that_is_not_there(here, tilewright):
    result = tilewright("run", "nowhere.py")
    assert (result.exit_code, result.stderr) == (
        Exit.USAGE,
        "error: no file nowhere.py\nexpected a Python script\nfor a module: -m NAME\n",
    )


def test_unknown_architecture(here, tilewright):
    (here / "empty.py").touch()
    assert tilewright("run", "--arch", "sm_70", "empty.py").stderr.endswith("sm_110, sm_120, sm_121\n")


def test_exit_status_of_the_script(here, tilewright):
    (here / "end.py").write_text("raise SystemExit(9)")
    assert tilewright("run", "end.py").exit_code == 9


def test_check_ends_with_1_where_there_are_faults(here, tilewright):
    (here / "copy_unwritten.py").write_text(COPY_UNWRITTEN)
    assert tilewright("run", "copy_unwritten.py").exit_code == 0
    result = tilewright("run", "--check", "copy_unwritten.py")
    assert result.exit_code == Exit.FINDINGS
    assert "read of memory that was never written" in result.stderr
