"""With a terminal and nothing said, `tilewright new` asks; otherwise it does not."""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

ENTER = b"\r"
DOWN = b"\x1b[B"


def converse(here: Path, arguments: list[str], answers: list[tuple[str, bytes]]) -> tuple[int, str]:
    """Run a command on a terminal and type each answer once its question is shown."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewright", *arguments],
        cwd=here,
        stdin=child,
        stdout=child,
        stderr=child,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "COLUMNS": "200"},
        start_new_session=True,
    )
    os.close(child)
    shown, seen, deadline = b"", 0, time.monotonic() + 60
    answers = list(answers)
    while time.monotonic() < deadline:
        if answers and answers[0][0].encode() in shown[seen:]:
            seen = len(shown)
            time.sleep(0.3)  # until the prompt reads
            os.write(parent, answers.pop(0)[1])
        if not select.select([parent], [], [], 0.1)[0]:
            continue
        try:
            data = os.read(parent, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        if b"\x1b[6n" in data:
            os.write(parent, b"\x1b[1;1R")  # where the cursor is
        shown += data
    os.close(parent)
    return process.wait(10), shown.decode(errors="replace")


def recorded(here: Path, op: str) -> dict:
    return yaml.safe_load((here / ".tilewright" / "ops" / f"{op}.yml").read_text())


def test_everything_is_asked_when_nothing_is_said(here):
    code, shown = converse(
        here,
        ["new"],
        [
            ("Name of the operator", b"my_op" + ENTER),
            ("What does it compute", ENTER),
            ("Formula", b"\x15x * y" + ENTER),
            ("dtypes", ENTER),
            ("Which shapes matter", ENTER),
            ("gradient needed", b"y"),
        ],
    )
    assert code == 0, shown
    answers = recorded(here, "my_op")
    assert answers["formula"] == "x * y"
    assert answers["grad_formula"] == "grad * y; grad * x"


def test_nothing_is_asked_that_is_said(here):
    code, shown = converse(here, ["new", "my_op", "--formula", "x * x"], [])
    assert code == 0, shown
    assert "?" not in shown
    assert recorded(here, "my_op")["formula"] == "x * x"


def test_nothing_is_asked_without_a_terminal(tilewright, here):
    assert tilewright("new", "my_op").exit_code == 0


def test_an_interrupt_writes_nothing(here):
    code, shown = converse(here, ["new", "my_op"], [("What does it compute", b"\x03")])
    assert code == 130, shown
    assert list(here.iterdir()) == []
    assert "Traceback" not in shown


@pytest.mark.parametrize(("answer", "remains"), [(b"y", False), (b"n", True)])
def test_removing_an_edited_file_is_confirmed(tilewright, here, answer, remains):
    tilewright("new", "my_op")
    kernel = here / "my_ops" / "my_op" / "cutile.py"
    kernel.write_text("# mine\n")
    code, shown = converse(here, ["remove", "my_op"], [("with all edits", answer)])
    assert kernel.exists() is remains, shown
    assert code == (2 if remains else 0)
