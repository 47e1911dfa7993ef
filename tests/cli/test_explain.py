"""`tilewright explain`: where its text comes from, what it prints and how it exits."""

import json

import pytest
from typer.testing import CliRunner

from tests.cli.test_documents import check
from tilewright.cli.app import app

POWER = "TypeCheckingError: Dimension #0 of shape (100,) is not a power of two\n"


def keep(folder, failures):
    path = folder / ".pytest_cache/v/tilewright/failures"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(failures))


def test_a_rule(tilewright):
    result = tilewright("explain", "TW203")
    assert result.exit_code == 0
    assert result.stdout.startswith("TW203 Several blocks write the same elements (error)\n")
    assert all(part in result.stdout for part in ("Why: ", "What to do: ", "Wrong:", "Right:", "ct.bid(1)"))


def test_a_text(tilewright):
    result = tilewright("explain", POWER)
    assert result.exit_code == 0
    assert result.stdout.startswith("A size of a tile is no power of two [size-not-power-of-two]\n")
    assert "tilewright check: TW220" in result.stdout


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_a_traceback_from_standard_input(arguments):
    traceback = f'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n{POWER}'
    result = CliRunner().invoke(app, ["explain", *arguments], input=traceback)
    assert result.exit_code == 0
    assert "[size-not-power-of-two]" in result.stdout


def test_an_unknown_code(tilewright):
    result = tilewright("explain", "TW2003")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == "did you mean TW203?"


def test_an_unknown_text(tilewright):
    result = tilewright("explain", "something went wrong")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("nothing is known of this text\n")
    assert "tilewright check" in result.stderr


def test_documents(tilewright, here):
    keep(here, [["test_a.py::test_op", POWER], ["test_b.py::test_op", "TW203"], ["test_c.py", "else"]])
    for arguments in (["TW203"], [POWER], ["nothing known"], ["--last"]):
        check(tilewright("explain", *arguments, "--json").stdout, "explain")


def test_the_last_failures(tilewright, here):
    keep(here, [["test_a.py::test_op", POWER], ["test_a.py::test_other", POWER], ["test_c.py", "else"]])
    result = tilewright("explain", "--last")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:3] == [
        "test_a.py::test_op: size-not-power-of-two",
        "test_a.py::test_other: size-not-power-of-two",
        "test_c.py: nothing is known of it",
    ]
    assert result.stdout.count("Likely causes") == 1


def test_last_failures_of_which_nothing_is_known(tilewright, here):
    keep(here, [["test_c.py", "else"]])
    result = tilewright("explain", "--last")
    assert (result.exit_code, result.stdout) == (1, "test_c.py: nothing is known of it\n")


def test_nothing_failed(tilewright, here):
    keep(here, [])
    result = tilewright("explain", "--last")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "nothing failed in the last run of pytest\n")


def test_last_and_a_text(tilewright):
    assert tilewright("explain", "--last", "TW203").exit_code == 2
