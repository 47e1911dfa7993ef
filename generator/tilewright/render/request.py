"""Complete the answers that a person gave: short dtypes, checked formulas, the gradient of a formula."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tilewright.catalogue.families import Family
from tilewright.catalogue.families import find_family
from tilewright.catalogue.families import read_families
from tilewright.catalogue.formula import parse_formula
from tilewright.catalogue.functions import read_functions
from tilewright.catalogue.gradient import gradient_formula
from tilewright.catalogue.nearest import unknown_name
from tilewright.errors import UsageError
from tilewright.render.answers import check_choices
from tilewright.render.answers import parse_dtypes
from tilewright.render.answers import read_questions
from tilewright.render.source import Source

# The only family whose gradient is derived rather than written; its formula is also the default.
FORMULA_FAMILY = "elementwise"
_SETTLED = ("op", "layout", "package", "placement")  # where an operator is
DEFAULT_FORMULA = "x * sigmoid(x)"


def complete(source: Source, answers: Mapping[str, Any]) -> dict[str, Any]:
    """The answers as the template wants them.

    Raises:
        UsageError: An answer is not one of the choices, or a formula is not one.
    """
    complete = dict(answers)
    if "dtypes" in complete:
        complete["dtypes"] = parse_dtypes(complete["dtypes"])
    families = read_families(source.partials)
    family = find_family(complete.get("family", FORMULA_FAMILY), families)
    if "variant" in complete:
        _check_variant(complete["variant"], family, families, is_given="family" in complete)
    check_choices(complete, read_questions(source.template))
    if family.name == FORMULA_FAMILY:
        _complete_formula(source, complete)
    elif complete.get("epilogue"):
        parse_formula(complete["epilogue"], read_functions(source.partials), given=("acc",))
    return complete


def complete_changes(source: Source, changed: Mapping[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Answers that change those of an operator, as the template wants them.

    Raises:
        UsageError: An answer is not one of the choices, a formula is not one, or the answer is settled for good.
    """
    for key in _SETTLED:
        if key in changed and key in recorded and changed[key] != recorded[key]:
            raise UsageError(
                f"the {key} of an operator cannot be changed, here from {recorded[key]} to {changed[key]}",
                expected="expected an answer on what it computes",
                hint="make another operator and remove this one: tilewright new, tilewright remove",
            )
    about = {key: recorded[key] for key in ("family", "formula") if key in recorded}
    has_formula = changed.get("family", about.get("family")) == FORMULA_FAMILY
    has_old_gradient = recorded.get("grad_formula") and not {"backward", "grad_formula"} & changed.keys()
    if has_formula and "formula" in changed and has_old_gradient:
        raise UsageError(
            f"the recorded gradient is that of {recorded['formula']}, not of {changed['formula']}",
            expected="expected what becomes of the gradient as well",
            hint="--data backward=true derives it, backward=false drops it, grad_formula=... gives it",
        )
    completed = complete(source, {**about, **changed})
    if has_formula and changed.get("backward") is False:
        completed["grad_formula"] = ""
    return {key: value for key, value in completed.items() if key in changed or key not in about}


def _check_variant(name: str, family: Family, families: Sequence[Family], *, is_given: bool) -> None:
    variants = [variant.name for variant in family.variants]
    if name in variants:
        return
    for other in families:
        if name in (variant.name for variant in other.variants):
            raise UsageError(
                f"{name!r} is not a variant of {family.name}",
                expected=f"expected one of {', '.join(variants)}" if variants else "expected none: it has no variants",
                hint=f"it is one of {other.name}: --family {other.name}",
            )
    if is_given and not variants:
        raise UsageError(
            f"{name!r} is not a variant of {family.name}",
            expected="expected none: it has no variants",
            hint="leave it out",
        )
    known = variants or [variant.name for other in families for variant in other.variants]
    raise unknown_name(f"{name!r} is not a variant of {family.name}", name, known)


def _complete_formula(source: Source, answers: dict[str, Any]) -> None:
    functions = read_functions(source.partials)
    formula = parse_formula(answers.get("formula", DEFAULT_FORMULA), functions)
    backward = answers.pop("backward", None)
    if answers.get("grad_formula") and backward is False:
        raise UsageError(
            "--no-backward and --grad-formula contradict each other",
            expected="expected one of them",
            hint="a gradient formula is what makes an elementwise operator differentiable",
        )
    if backward and not answers.get("grad_formula"):
        answers["grad_formula"] = gradient_formula(formula, functions)
