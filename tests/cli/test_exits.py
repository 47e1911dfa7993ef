"""Errors become messages and exit codes; a traceback is shown on request only."""

import os
import subprocess
import sys

import pytest
import typer

from tilewright.cli.exits import errors_as_messages
from tilewright.errors import HostError
from tilewright.errors import MissingError
from tilewright.errors import NothingRanError


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (HostError("no host", expected="expected one", hint="make one"), 2, "error: no host\nexpected one\nmake one\n"),
        (MissingError("no GPU"), 3, "error: no GPU\n"),
        (NothingRanError("no case"), 5, "error: no case\n"),
        (PermissionError(13, "Permission denied", "/x"), 2, "error: Permission denied: /x\n"),
        (ZeroDivisionError("division\nby zero"), 70, "internal error: ZeroDivisionError: division by zero\n"),
        (OSError(28, "No space left on device"), 2, "error: No space left on device\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_every_error_has_its_code(capsys, error, code, message):
    with pytest.raises(typer.Exit) as exit_, errors_as_messages(debug=False):
        raise error
    assert exit_.value.exit_code == code
    shown = capsys.readouterr().err
    assert shown.startswith(message)
    assert "Traceback" not in shown


def test_a_bug_points_to_debug(capsys):
    with pytest.raises(typer.Exit), errors_as_messages(debug=False):
        raise ZeroDivisionError
    assert "--debug" in capsys.readouterr().err


def test_debug_shows_the_traceback(capsys):
    with pytest.raises(typer.Exit), errors_as_messages(debug=True):
        raise HostError("no host")
    assert "Traceback" in capsys.readouterr().err


def test_debug_may_stand_anywhere(tilewright, here):
    assert "Traceback" in tilewright("--debug", "remove", "x").stderr
    assert "Traceback" in tilewright("remove", "x", "--debug").stderr
    assert "Traceback" not in tilewright("remove", "x").stderr


def test_an_unknown_verb_is_a_usage_error(tilewright):
    result = tilewright("nwe")
    assert result.exit_code == 2
    assert "new" in result.stderr


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_shows_the_panels(tilewright, option):
    result = tilewright(option)
    assert result.exit_code == 0
    for word in ("Create", "Understand", "new", "remove", "register", "list"):
        assert word in result.stdout


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(tilewright, option):
    from tilewright import __version__

    assert tilewright(option).stdout == f"tilewright {__version__}\n"


HEAVY = {"copier", "libcst", "torch", "yaml", "jinja2", "questionary", "numpy", "cuda"}
HELP = f"""
import sys
from tilewright.cli.app import main
sys.argv = ["tilewright", "--help"]
try:
    main()
except SystemExit:
    print(sorted({HEAVY} & sys.modules.keys()), file=sys.stderr)
"""


def test_help_imports_nothing_heavy():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, env=environment)
    assert done.stderr == "[]\n"


def test_a_pipe_that_nobody_reads_is_no_message(capsys):
    with pytest.raises(typer.Exit) as exit_, errors_as_messages(debug=False):
        raise BrokenPipeError
    assert (exit_.value.exit_code, capsys.readouterr().err) == (1, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("arguments", [["--version"], ["list"]])
def test_a_full_disk_is_a_message(arguments):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "tilewright", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n")


def test_nothing_is_asked_where_standard_input_is_closed():
    command = f"{sys.executable} -m tilewright new 0<&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: no name given")
