"""`tilewright verify` takes operators through the six steps."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.hosts import edit
from tests.support.hosts import scale_add
from tests.support.tilegym_checkout import git
from tilewright.aot.compile import compile_operator
from tilewright.cli.exits import Exit
from tilewright.cli.verify import exit_code
from tilewright.errors import MissingError
from tilewright.model.kernel import Compilation
from tilewright.model.outcome import StepOutcome
from tilewright.model.outcome import Verdict
from tilewright.verify import session
from tilewright.verify import tests
from tilewright.verify.device import Devices
from tilewright.verify.importing import Registered

pytest.importorskip("cuda.tile")


@pytest.fixture
def operator(here, monkeypatch):
    """The current folder is a host with one operator; nothing is imported, tested or compiled, and there is no GPU."""
    monkeypatch.setattr(session, "find_gpus", lambda: Devices(why_none="no GPU"))
    monkeypatch.setattr(session, "registered", everything_is_registered)
    monkeypatch.setattr(session, "compile_operator", lambda operator, **_options: Compilation(op=operator.name))
    monkeypatch.setattr(tests, "run_python", one_test_passes)
    return scale_add(here)


def everything_is_registered(operators):
    return {operator.name: Registered(backends=("cutile",), exported=True) for operator in operators}


def one_test_passes(_operator, arguments, **_options):
    """What pytest leaves in its report."""
    report = next(argument for argument in arguments if argument.startswith("--junit-xml="))
    Path(report.partition("=")[2]).write_text(
        '<testsuites><testsuite><testcase name="test_op"/></testsuite></testsuites>'
    )


def step(verdict, **data):
    return StepOutcome(step="tests", verdict=verdict, data=data)


def test_one_line_for_each_step(operator, tilewright):
    result = tilewright("verify", "scale_add")
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.stdout.splitlines()] == [
        *("scale_add", "stub", "kernel", "registration", "tests", "benchmark", "verify")
    ]
    assert result.stderr == "1 operator: 5 ok, 1 skipped\n"


def test_all_operators_without_a_name(operator, tilewright):
    assert tilewright("verify").stdout.startswith("scale_add\n")


def test_from_a_folder_inside_the_host(operator, tilewright, monkeypatch):
    monkeypatch.chdir(operator.path(operator.kernel).parent)
    assert tilewright("verify").exit_code == 0


def test_failure(operator, tilewright):
    operator.path(operator.benchmark).unlink()
    result = tilewright("verify")
    assert result.exit_code == Exit.FINDINGS
    assert "benchmark     failed: tests/benchmark/bench_scale_add.py does not exist" in result.stdout


def test_gpu_that_is_required(operator, tilewright):
    assert tilewright("verify", "--require-gpu").exit_code == Exit.MISSING


def test_json_is_all_there_is_on_stdout(operator, tilewright):
    document = json.loads(tilewright("verify", "--json").stdout)
    assert document["operators"][0]["name"] == "scale_add"
    assert document["counts"]["ok"] == 5


def test_junit(operator, tilewright, here):
    assert tilewright("verify", "--junit", "out/verify.xml").exit_code == 0
    (suite,) = ElementTree.parse(here / "out" / "verify.xml").getroot()
    assert suite.get("tests") == "6"


def test_architectures_reach_the_compiler(operator, tilewright, monkeypatch):
    asked = {}
    monkeypatch.setattr(session, "compile_operator", lambda operator, **o: asked.update(o) or Compilation(op="x"))
    assert tilewright("verify", "--arch", "sm_90,sm_80", "--jobs", "3").exit_code == 0
    assert ([target.name for target in asked["targets"]], asked["jobs"]) == (["sm_90", "sm_80"], 3)


@pytest.mark.parametrize("arguments", [["nothing"], ["--arch", "sm_75"], ["--jobs", "0"]])
def test_wrong_usage(operator, tilewright, arguments):
    assert tilewright("verify", *arguments).exit_code == Exit.USAGE


def test_no_host(here, tilewright):
    result = tilewright("verify")
    assert result.exit_code == Exit.USAGE
    assert "no host repository" in result.stderr


def test_host_without_operators(operator, tilewright, here):
    for path in ("tiny_ops/scale_add/interface.py", "tiny_ops/scale_add/cutile.py", ".tilewright/ops/scale_add.yml"):
        (here / path).unlink()
    assert tilewright("verify").exit_code == Exit.NOTHING_RAN


def test_no_compiler(operator, tilewright, monkeypatch):
    def missing(*_arguments, **_options):
        raise MissingError("tileiras not found.")

    monkeypatch.setattr(session, "compile_operator", missing)
    result = tilewright("verify")
    assert result.exit_code == Exit.MISSING
    assert "verify        skipped: tileiras not found." in result.stdout


@pytest.mark.parametrize(
    ("outcomes", "require_gpu", "code"),
    [
        ([step(Verdict.OK), step(Verdict.SKIPPED, missing="gpu")], False, Exit.FINE),
        ([step(Verdict.OK), step(Verdict.SKIPPED, missing="gpu")], True, Exit.MISSING),
        ([step(Verdict.FAILED), step(Verdict.SKIPPED, missing="gpu")], True, Exit.FINDINGS),
        ([step(Verdict.NOT_APPLICABLE), step(Verdict.SKIPPED)], False, Exit.NOTHING_RAN),
        ([], False, Exit.NOTHING_RAN),
    ],
)
def test_exit_codes(outcomes, require_gpu, code):
    assert exit_code(outcomes, require_gpu=require_gpu) is code


def test_compiles_for_real_by_default():
    assert session.compile_operator is compile_operator


def test_rendered_operator_in_tilegym(tilegym_checkout, tilewright, monkeypatch):
    monkeypatch.chdir(tilegym_checkout)
    monkeypatch.setattr(session, "find_gpus", lambda: Devices(why_none="no GPU"))
    assert tilewright("new", "my_op").exit_code == 0
    result = tilewright("verify", "--arch", "sm_90")
    assert result.exit_code == 0, result.output
    assert result.stderr == "1 operator: 5 ok, 1 skipped\n"


def test_rendered_operator_that_tilegym_does_not_know(tilegym_checkout, tilewright, monkeypatch):
    monkeypatch.chdir(tilegym_checkout)
    monkeypatch.setattr(session, "compile_operator", lambda operator, **_options: Compilation(op=operator.name))
    assert tilewright("new", "my_op").exit_code == 0
    git(tilegym_checkout, "checkout", "src/tilegym/ops/ops.py", "src/tilegym/ops/cutile/__init__.py")
    result = tilewright("verify", "my_op")
    assert result.exit_code == Exit.FINDINGS
    failed = [line for line in result.stdout.splitlines() if "failed: " in line]
    assert [line.split()[0] for line in failed] == ["stub", "registration", "tests"]
    assert all(line.endswith("run: tilewright register my_op") for line in failed[:2])


def test_being_terminated_ends_the_processes_that_it_started(here):
    operator = scale_add(here)
    forever = "import os\nopen('pid', 'w').write(str(os.getpid()))\nwhile True: pass\n"
    edit(operator, operator.kernel, "import torch\n", f"import torch\n{forever}")
    command = [sys.executable, "-m", "tilewright", "verify", "scale_add"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not ((here / "pid").exists() and (here / "pid").read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.terminate()
    assert process.wait(20) == 128 + signal.SIGTERM
    assert not Path("/proc", (here / "pid").read_text()).exists()
