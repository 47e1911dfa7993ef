"""Scripts run as with python, with a CUDA device."""

import sys
from pathlib import Path

import pytest

from tilewright.errors import UsageError
from tilewright.interpret.script import run_script

SCRIPT = """\
import sys

import cuda.tile as ct
import torch

import beside


@ct.kernel
def double(X, Y, TILE: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(Y, (i,), ct.load(X, (i,), (TILE,)) * 2)


if __name__ == "__main__":
    x = torch.randn(64, device="cuda")
    y = torch.empty_like(x)
    ct.launch(torch.cuda.current_stream(), (4,), double, (x, y, 16))
    torch.testing.assert_close(y, x * 2)
    print(sys.argv[1:], y.device, torch.cuda.get_device_capability())
    if "unwritten" in sys.argv:
        ct.launch(torch.cuda.current_stream(), (4,), double, (torch.empty_like(x), y, 16))
        print("goes on")
    for argument in sys.argv[1:]:
        if argument.startswith("exit "):
            sys.exit(eval(argument.removeprefix("exit ")))
        if argument == "fail":
            y.fill_(1 / 0)
        if argument == "no power of two":
            ct.launch(torch.cuda.current_stream(), (4,), double, (x, y, 15))
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").touch()
    (tmp_path / "double.py").write_text(SCRIPT)
    return tmp_path / "double.py"


@pytest.fixture
def run(script, capfd, monkeypatch):
    def run_it(*arguments: str, name: str = str(script), module: bool = False, arch: str = "sm_90", **options):
        before = sys.argv, sys.path[:], sys.modules["__main__"]
        status = run_script(name, arguments, module=module, arch=arch, check=options.pop("check", False), **options)
        assert (sys.argv, sys.path[:], sys.modules["__main__"]) == before
        sys.modules.pop("beside", None)
        out, err = capfd.readouterr()
        return status, out, err

    monkeypatch.chdir(script.parent)
    return run_it


def test_script(run):
    assert run("a", "--check") == (0, "['a', '--check'] cuda:0 (9, 0)\n", "")


def test_script_of_another_folder(run, monkeypatch):
    monkeypatch.chdir("/")
    assert run("a")[0] == 0


def test_module(run):
    assert run("a", name="double", module=True, arch="sm_100") == (0, "['a'] cuda:0 (10, 0)\n", "")


@pytest.mark.parametrize(
    ("code", "status", "text"),
    [("0", 0, ""), ("None", 0, ""), ("7", 7, ""), ("'all is lost'", 1, "all is lost\n"), ("True", 1, "")],
)
def test_exit_status_is_that_of_the_script(run, code, status, text):
    found, _, err = run(f"exit {code}")
    assert (found, err) == (status, text)


def test_traceback_starts_in_the_script(run, script):
    status, _, err = run("fail")
    assert status == 1
    assert err.splitlines()[:2] == [
        "Traceback (most recent call last):",
        f'  File "{script}", line 28, in <module>',
    ]
    assert err.splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_traceback_of_a_launch_has_the_frames_of_the_script_only(run, script):
    err = run("no power of two")[2]
    assert "is not a power of two" in err
    assert err.count("  File ") == 1
    assert f'  File "{script}", line 30, in <module>\n' in err
    assert "tilewright/interpret/launch.py" in run("no power of two", debug=True)[2]


def test_script_that_does_not_compile(run, script):
    script.write_text("x = (\n")
    status, _, err = run()
    assert status == 1
    assert "SyntaxError" in err
    assert "runpy" not in err


def test_findings_are_printed_when_the_script_has_ended(run):
    status, out, err = run("unwritten", check=True)
    assert (status, out.splitlines()[1:]) == (1, ["goes on"])
    assert "read of memory that was never written" in err
    assert run("unwritten") == (0, out, "")


def test_the_launch_with_a_fault_and_the_number_of_launches_are_told(run, script):
    first, *_, last = run("unwritten", check=True)[2].splitlines()
    assert first == f"{script}:22: launch with X (64,), Y (64,)"
    assert last == "2 launches checked, 1 fault found in 1 of them"


def test_nothing_found_is_not_nothing_checked(run, script):
    assert run(check=True)[2] == "1 launch checked, nothing found\n"
    script.write_text("")
    assert run(check=True) == (0, "", "no launch was checked\n")


def test_script_that_fails_keeps_its_status(run):
    assert run("unwritten", "exit 7", check=True)[0] == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "nowhere.py"}, "no file nowhere.py\nexpected a Python script\nfor a module: -m NAME"),
        ({"name": ""}, "no file ''\nexpected a Python script\nfor a module: -m NAME"),
        ({"name": "/"}, "no file __main__.py in /\nexpected a Python script, or a folder that has it"),
        ({"name": "nowhere", "module": True}, "no module nowhere\nexpected one that can be imported from here"),
        ({"name": "no.where", "module": True}, "no module no.where\nexpected one that can be imported from here"),
        ({"arch": "sm_80,sm_90"}, "'sm_80,sm_90' is not one architecture\nexpected one, such as sm_90"),
        ({"arch": ""}, "'' is not one architecture\nexpected one, such as sm_90"),
    ],
)
def test_what_cannot_be_run(run, arguments, message):
    with pytest.raises(UsageError) as error:
        run(**arguments)
    assert str(error.value) == message
