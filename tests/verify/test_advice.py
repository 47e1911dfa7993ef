from tests.support.hosts import edit
from tilewright.report.text import TextReport
from tilewright.verify.advice import with_advice
from tilewright.verify.outcomes import failed
from tilewright.verify.outcomes import ok
from tilewright.verify.steps import verify

from .test_steps import SESSION

POWER = "Invalid argument: Dimension #0 of shape (100,) is not a power of two (my_op/cutile.py:12:5)"


def test_a_failure_that_is_known():
    outcome = with_advice(failed("verify", [POWER]))
    assert outcome.data["problems"] == [POWER]
    assert outcome.data["advice"][0].endswith("(tilewright explain size-not-power-of-two)")
    assert len(outcome.data["advice"]) == 2


def test_a_failure_that_nothing_is_known_of():
    outcome = failed("verify", ["else"])
    assert with_advice(outcome) is outcome


def test_a_step_that_did_not_fail():
    outcome = ok("verify", POWER)
    assert with_advice(outcome) is outcome


def test_advice_is_given_once():
    outcome = with_advice(failed("tests", ["1 of 2 tests"]), POWER, "rounding: a few units")
    assert outcome.data["advice"][0] == "rounding: a few units"
    assert with_advice(outcome) is outcome


def test_advice_stands_below_the_step(capsys):
    TextReport().step(with_advice(failed("verify", [POWER])))
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith("  verify        failed: Invalid argument")
    assert second == f"{'':16}A size of a tile is no power of two (tilewright explain size-not-power-of-two)"
    assert third.startswith(f"{'':16}most likely: ")


def test_findings_of_rules_come_with_their_advice(operator):
    edit(operator, operator.kernel, "ct.store(Out, (i,), (tx", "ct.sigmoid(i)\n    ct.store(Out, (i,), (tx")
    outcome = list(verify(operator, SESSION))[-1]
    assert any("tilewright explain TW260" in line for line in outcome.data["advice"])
