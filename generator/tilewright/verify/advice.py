"""Say below a failed step what causes such failures, and which command tells more."""

from dataclasses import replace

from tilewright.explain.advice import advise
from tilewright.model.outcome import StepOutcome
from tilewright.model.outcome import Verdict


def with_advice(outcome: StepOutcome, text: str = "", comparison: str = "") -> StepOutcome:
    """The outcome with `advice` in its data, if it failed, has none yet and something is known of it.

    `text` is what the step said in full, by default its problems; `comparison` sums up tensors that differ.
    """
    if outcome.verdict is not Verdict.FAILED or "advice" in outcome.data:
        return outcome
    advice = [*comparison.splitlines(), *advise(text or "\n".join(outcome.data["problems"]))]
    return replace(outcome, data={**outcome.data, "advice": advice}) if advice else outcome
