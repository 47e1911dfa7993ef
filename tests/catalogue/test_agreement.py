"""The template, which has only Jinja, and the package accept the same formulas."""

from pathlib import Path

import jinja2
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from tilewright.catalogue.formula import parse_formula
from tilewright.catalogue.functions import read_functions
from tilewright.errors import UsageError

TEMPLATE = Path(__file__).parents[2] / "template"
FUNCTIONS = read_functions(TEMPLATE / "_partials")
ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(TEMPLATE),
    extensions=["jinja2_ansible_filters.AnsibleCoreFiltersExtension"],
    keep_trailing_newline=True,
)
CHECK = ENVIRONMENT.from_string(
    "{% from '_partials/formula.jinja' import formula_error with context %}{{ formula_error(formula) }}"
)


def template_error(formula: str) -> str:
    return CHECK.render(formula=formula, partials="_partials", family="elementwise", dtypes=["float32"]).strip()


def package_error(formula: str) -> str:
    try:
        parse_formula(formula, FUNCTIONS)
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "formula",
    [
        "x * sigmoid(x)",
        "alpha=1.0; t = x * alpha; t * sigmoid(t)",
        "x * alpha, alpha=-1e-3",
        "where(x > 0, x, y)",
        "-x ** -2",
        "x - (-y)",
        "clamp(x, -1, 1)",
        "where(isnan(x), 0.0, x)",
        "",
        ";",
        "x; y",
        "x +",
        "x y",
        "(x",
        "x)",
        "x / 0",
        "x / 0.0",
        "1 + 2",
        "x < y",
        "x * (x < y)",
        "out + x",
        "grad * x",
        "X",
        "sigmod(x)",
        "exp(x, y)",
        "exp",
        "exp(2) * x",
        "exp(alpha) * x; alpha=1.0",
        "clamp(x, y, 1)",
        "where(x, y, x)",
        "isnan(x)",
        "x * isnan(x)",
        "t * x; t = x",
        "t = x",
        "t=1; t=2; x * t",
        "exp=1.0; x",
        "x if y else z",
        "x % y",
        "x // y",
        "x.real",
        "x[0]",
        "0x10 * x",
        "1_000 * x",
        "True * x",
        "lambda * x",
        "a * b * c * d * e",
        "x == y",
        "x + -y",
        "- - x",
        "+x",
        "pow(2, 3) * x",
        "where(x > 0 > 1, x, y)",
        "where((x > 0), x, y)",
        *("x\n* 2", "x\t* 2", "(exp)(x)", "exp(x,)", "exp(x) (y)", "x * 08", "x * 00", "x * 01.5", "x * a, a=08"),
        *("t = x; x * 2", "x * 2, a=1.0", "t = x; u = t; x", "x * 1e400", "x * 1e-400", "x * a, a=1e400", "x * 1e308"),
        *("x / (0)", "x / ((0.0))", "x / (0) ** 2", "x / (0.5)", "x / (1 - 1)", "(" * 40 + "x" + ")" * 40),
    ],
)
def test_both_accept_or_both_refuse(formula):
    assert bool(template_error(formula)) == bool(package_error(formula)), template_error(formula) or package_error(
        formula
    )


TOKENS = ["x", "y", "alpha", "2", "0.0", "1e-3", "+", "-", "*", "/", "**", "(", ")", ",", ";", "=", "<", "=="]
CALLS = ["exp(", "where(x > 0, ", "clamp(x, ", "maximum(", "isnan("]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(TOKENS + CALLS), min_size=1, max_size=9).map(" ".join))
def test_both_agree_on_any_sequence_of_tokens(formula):
    assert bool(template_error(formula)) == bool(package_error(formula)), template_error(formula) or package_error(
        formula
    )
