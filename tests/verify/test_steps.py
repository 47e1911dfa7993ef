from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.support.hosts import edit
from tilewright.model.kernel import Compilation
from tilewright.verify.device import Devices
from tilewright.verify.importing import Registered
from tilewright.verify.steps import STEPS
from tilewright.verify.steps import look
from tilewright.verify.steps import verify

SESSION = SimpleNamespace(
    devices=Devices(why_none="no GPU"),
    interpreted_arch="sm_90",
    registered=lambda _: Registered(backends=("cutile",), exported=True),
    compile=lambda _: Compilation(op="scale_add"),
)


def test_steps_in_their_order(operator):
    pytest.importorskip("cuda.tile")
    assert [(outcome.step, str(outcome.verdict)) for outcome in verify(operator, SESSION)] == [
        ("stub", "ok"),
        ("kernel", "ok"),
        ("registration", "ok"),
        ("tests", "ok"),
        ("benchmark", "skipped"),
        ("verify", "ok"),
    ]


def test_recorded_reason_stands_for_the_step(operator):
    skipping = replace(operator, skip={step.name: f"no {step.name} here" for step in STEPS})
    assert [(outcome.verdict, outcome.detail) for outcome in verify(skipping, SESSION)] == [
        ("n/a", f"no {step.name} here") for step in STEPS
    ]


def test_failure_of_a_step_does_not_hide_the_others(operator):
    edit(operator, operator.stub, "    raise NotImplementedError(", "    print(")
    edit(operator, operator.test, "def test_op(", "def test_other(")
    operator.path(operator.benchmark).unlink()
    verdicts = {
        outcome.step: outcome.verdict for outcome in verify(replace(operator, skip={"verify": "later"}), SESSION)
    }
    assert {step for step, verdict in verdicts.items() if verdict == "failed"} == {"stub", "tests", "benchmark"}


def test_failure_lists_all_problems(operator):
    edit(operator, operator.test, "def test_op(", "def test_other(")
    (outcome,) = (look(step, operator) for step in STEPS if step.name == "tests")
    assert outcome.detail.endswith("(and 1 more)")
    assert len(outcome.data["problems"]) == 2
