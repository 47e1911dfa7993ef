"""Ask for what the options leave open, with a terminal only; the questions and their costs are the template's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.catalogue.names import check_operator_name
from tilewright.cli import console
from tilewright.errors import UsageError
from tilewright.render import Source
from tilewright.render import render

# What a colleague would ask; where the files go is known from the folder.
ASKED = ("family", "variant", "formula", "bias", "epilogue", "precision", "dtypes", "backward", "shapes")
# Any of these says that the person knows what they want.
DECIDED = {"family", "variant", "formula"}


def complete_name(source: Source, answers: Mapping[str, Any]) -> dict[str, Any]:
    """The answers with a name that an operator can have, asked for if there is a terminal."""
    if "op" not in answers:
        if not console.has_terminal():
            raise UsageError(
                "no name given", expected="expected tilewright new OP", hint="for example: tilewright new rms_norm"
            )
        answers = {**answers, "op": _ask_name(source)}
    check_operator_name(answers["op"], source.partials, single_file=answers.get("layout") == "single_file")
    return dict(answers)


def ask_answers(source: Source, answers: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """The given answers and those to the questions that they leave open."""
    open_questions = [name for name in ASKED if name not in answers]
    if answers.get("layout") == "tilegym" and "placement" not in answers:
        open_questions.append("placement")
    rendering = render(source, answers, root, ask=open_questions, overwrite=True)
    answered = {name: rendering.answers[name] for name in open_questions if name in rendering.answers}
    if rendering.answers["family"] == "elementwise" and "grad_formula" not in answers:
        answered["backward"] = _ask_gradient()
    return {**answers, **answered}


def _ask_gradient() -> bool:
    import questionary

    question = "Is a gradient needed? Derived from the formula; costs a second kernel and its tests"
    return bool(questionary.confirm(question, default=False).unsafe_ask())


def _ask_name(source: Source) -> str:
    import questionary

    def problem(name: str) -> bool | str:
        try:
            check_operator_name(name, source.partials)
        except UsageError as error:
            return f"{error.what}; {error.expected}"
        return True

    question = questionary.text("Name of the operator (snake_case, for example rms_norm)", validate=problem)
    return str(question.unsafe_ask())
