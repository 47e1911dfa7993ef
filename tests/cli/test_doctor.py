"""`tilewright doctor` says what is missing and how to mend it."""

import json

import pytest

from tests.support import results
from tilewright.cli.exits import Exit
from tilewright.verify import doctor
from tilewright.verify.doctor import Finding
from tilewright.verify.doctor import State

GPU = Finding(name="gpu", state=State.MISSING, needed_for="run kernels")


@pytest.fixture
def finds(monkeypatch):
    return lambda *findings: monkeypatch.setattr(doctor, "examine", lambda: iter(findings))


def test_what_is_missing_is_an_exit_code(finds, tilewright):
    finds(*results.FINDINGS)
    result = tilewright("doctor")
    assert result.exit_code == Exit.MISSING
    assert "mend: pip install torch" in result.stdout


def test_no_gpu_is_none(finds, tilewright):
    finds(results.FINDINGS[0], GPU)
    assert tilewright("doctor").exit_code == 0


def test_json(finds, tilewright):
    finds(*results.FINDINGS)
    found = json.loads(tilewright("doctor", "--json").stdout)["findings"]
    assert [(finding["name"], finding["state"]) for finding in found] == [("git", "present"), ("torch", "missing")]


def test_this_machine(tilewright, here):
    assert tilewright("doctor").stdout.startswith("python ")
