"""`tilewright register` mends a registration that is incomplete, and changes nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tilegym_checkout import git
from tilewright.render import locate


def test_a_bare_copier_copy_is_completed(tilewright, tilegym_checkout, monkeypatch):
    monkeypatch.chdir(tilegym_checkout)
    template = str(locate().template)
    subprocess.run([sys.executable, "-m", "copier", "copy", "-q", "-d", "op=my_op", template, "."], check=True)
    assert tilewright("register", "my_op").exit_code == 0
    registered = git(tilegym_checkout, "diff")
    assert registered.count("\n+    from .my_op import my_op") == 1
    for path in git(tilegym_checkout, "ls-files", "--others").split():
        (tilegym_checkout / path).unlink()
    git(tilegym_checkout, "checkout", ".")
    tilewright("new", "my_op")
    assert git(tilegym_checkout, "diff") == registered


def test_a_missing_import_is_mended(tilewright, tilegym_checkout, monkeypatch):
    monkeypatch.chdir(tilegym_checkout)
    tilewright("new", "my_op")
    init = Path("src/tilegym/ops/cutile/__init__.py")
    complete = init.read_text()
    init.write_text(complete.replace("    from . import my_op\n", ""))
    result = tilewright("register", "my_op")
    assert result.exit_code == 0, result.stderr
    assert init.read_text() == complete


def test_a_complete_registration_stays_as_it_is(tilewright, tilegym_checkout, monkeypatch):
    monkeypatch.chdir(tilegym_checkout)
    tilewright("new", "my_op")
    before = git(tilegym_checkout, "diff")
    result = tilewright("register", "my_op", "--check")
    assert result.exit_code == 0
    assert "Nothing to do" in result.stderr
    assert git(tilegym_checkout, "diff") == before


def test_a_missing_kernel_is_not_registered(tilewright, tilegym_checkout, monkeypatch):
    monkeypatch.chdir(tilegym_checkout)
    tilewright("new", "my_op")
    Path("src/tilegym/ops/cutile/my_op.py").unlink()
    result = tilewright("register", "my_op")
    assert result.exit_code == 2
    assert "copier recopy -a .tilewright/ops/my_op.yml" in result.stderr


def test_an_operator_written_by_hand_is_mended(tilewright, tilegym_checkout, monkeypatch):
    monkeypatch.chdir(tilegym_checkout)
    init = Path("src/tilegym/ops/cutile/__init__.py")
    complete = init.read_text()
    assert "    from . import silu_and_mul\n" in complete
    init.write_text(complete.replace("    from . import silu_and_mul\n", ""))
    assert tilewright("register", "silu_and_mul").exit_code == 0
    assert init.read_text() == complete
    assert git(tilegym_checkout, "status", "--short") == ""


@pytest.mark.parametrize("op", ["nothing_such", "utils", "rms_norm_backward"])
def test_half_an_operator_written_by_hand_is_refused(tilewright, tilegym_checkout, monkeypatch, op):
    monkeypatch.chdir(tilegym_checkout)
    result = tilewright("register", op)
    assert result.exit_code == 2
    assert "was not made by tilewright" in result.stderr
    assert git(tilegym_checkout, "status", "--short") == ""


def test_elsewhere_an_operator_registers_itself(tilewright, here):
    tilewright("new", "my_op")
    result = tilewright("register", "my_op")
    assert result.exit_code == 2
    assert "is not a TileGym checkout" in result.stderr
