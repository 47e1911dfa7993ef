"""Formulas are taken apart, or refused with a caret below the place."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.catalogue.formula import parse_formula
from tilewright.catalogue.functions import read_functions
from tilewright.errors import UsageError

FUNCTIONS = read_functions(Path(__file__).parents[2] / "template" / "_partials")


def test_free_names_are_tensors_in_the_order_in_which_they_appear():
    assert parse_formula("y * x + y", FUNCTIONS).tensors == ("y", "x")


@pytest.mark.parametrize("text", ["alpha=1.0; x * alpha", "x * alpha; alpha=1.0", "x * alpha, alpha=1.0"])
def test_a_number_makes_a_scalar(text):
    formula = parse_formula(text, FUNCTIONS)
    assert (formula.tensors, formula.scalars) == (("x",), (("alpha", "1.0"),))


def test_a_negative_number_makes_a_scalar():
    assert parse_formula("x * a, a=-1e-3", FUNCTIONS).scalars == (("a", "-1e-3"),)


def test_an_expression_makes_a_local():
    formula = parse_formula("alpha=1.0; t = x * alpha; t * sigmoid(t)", FUNCTIONS)
    assert [(name, str(value)) for name, value in formula.locals] == [("t", "x * alpha")]
    assert str(formula.result) == "t * sigmoid(t)"
    assert formula.tensors == ("x",)


def test_given_names_are_not_tensors():
    assert parse_formula("acc * scale", FUNCTIONS, given=("acc",)).tensors == ("scale",)


@pytest.mark.parametrize(
    ("text", "what", "caret", "advice"),
    [
        ("x * sigmod(x)", "calls sigmod", "    ^^^^^^", "did you mean sigmoid?"),
        ("x * qqq(x)", "the functions are", "    ^^^", "use one of them"),
        ("x ? y", "has '?' in it", "  ^", "it is made of"),
        ("x +", "is not an expression", "   ^", "it is made of"),
        ("(x", "is not an expression", "^", "it is made of"),
        ("t = x y; t", "is not an expression", "      ^", "it is made of"),
        ("t = x; x", "declares t and does not use it", "^", "leave it out"),
        ("x, a=1.0", "declares a and does not use it", "^", "leave it out"),
        ("x * 1e400", "has 1e400 in it", "    ^^^^^", "beyond the largest"),
        ("x * a, a=-1e400", "has -1e400 in it", "         ^^^^^^", "beyond the largest"),
        ("(exp)(x)", "calls what is in parentheses", "    ^^", "write exp(x)"),
        ("exp(x, )", "has a comma before", "     ^^^", "leave it out"),
        ("x + -y", "has two signs in a row", "  ^^^", "parentheses"),
        ("x / 0", "divides by a literal zero", "    ^", "divide by"),
        ("x / 0.0e3", "divides by a literal zero", "    ^^^^^", "divide by"),
        ("1 + 2", "has no tensor in it", "^^^^^", "free names are tensors"),
        ("alpha=1.0; alpha", "has no tensor in it", "^", "free names are tensors"),
        ("a * b * c * d * e", "has 5 tensors", "^", "at most 4"),
        ("", "has no result", "^", "end with an expression"),
        ("t = x", "has no result", "^", "end with an expression"),
        ("x; y", "has more than one result", "   ^", "name it"),
        ("out + x", "uses the reserved name out", "^^^", "use another"),
        ("grad + x", "uses the reserved name grad", "^^^^", "use another"),
        ("X", "uses the name X", "^", "lower case"),
        ("t * x; t = x", "uses t before it is defined", "       ^", "define it first"),
        ("t=1.0; t=2.0; x * t", "declares t twice", "       ^", "use another name"),
        ("lambda=1.0; x", "declares lambda", "^^^^^^", "not taken"),
        ("exp=1.0; x", "declares exp", "^^^", "not taken"),
        ("x if y else z", "has 'x if y else z' in it", "^^^^^^^^^^^^^", "it is made of"),
        ("x % y", "has '%' in it", "  ^", "it is made of"),
        ("x // y", "has 'x // y' in it", "^^^^^^", "it is made of"),
        ("x < y", "uses the condition x < y as a value", "^^^^^", "where(x > 0, x, 0.0)"),
        ("x * isnan(x)", "uses the condition isnan(x) as a value", "^", "where(x > 0, x, 0.0)"),
        ("where(x, y, x)", "uses x as a condition", "^", "for example x > 0"),
        ("clamp(x, y, 1)", "gives clamp y", "^", "it takes a number or a scalar there"),
        ("maximum(2, x)", "gives maximum 2", "^", "it takes a tensor there"),
        ("pow(2, 3) * x", "calls pow without a tensor", "^", "put the value of pow(2, 3) there"),
        ("exp(x, y)", "gives exp 2 arguments", "^^^^^^^^^", "it takes 1"),
        ("exp * x", "uses the function exp without arguments", "^^^", "exp(...)"),
        ("x.real", "has 'x.real' in it", "^^^^^^", "it is made of"),
        ("0x10 * x", "has '0x10' in it", "^^^^", "it is made of"),
        ("x * exp(alpha), alpha=1.0", "gives exp alpha", "^", "it takes a tensor there"),
        ("b = a * 2; x * exp(b); a=1.0", "gives exp b", "^", "it takes a tensor there"),
        ("x * exp(2)", "gives exp 2", "^", "it takes a tensor there"),
        ("True * x", "has 'True' in it", "^^^^", "it is made of"),
    ],
)
def test_an_error_points_at_the_place(text, what, caret, advice):
    with pytest.raises(UsageError) as error:
        parse_formula(text, FUNCTIONS)
    first, second, third = str(error.value).split("\n")
    assert what in first
    assert second == f"  {text}"
    assert third.startswith(f"  {caret}")
    assert advice in third


@given(st.text(max_size=40) | st.text(alphabet="xy01.()+-*/=<>,; esigmod", max_size=40))
def test_any_text_is_a_formula_or_a_usage_error(text):
    with suppress(UsageError):
        parse_formula(text, FUNCTIONS)


@pytest.mark.parametrize(
    "text", ["-" * 600 + "x", "(" * 400 + "x" + ")" * 400, "(" * 240 + "x" + ")" * 240, "-" * 480 + "x"]
)
def test_deep_nesting_is_a_formula_or_a_usage_error(text):
    with suppress(UsageError):
        parse_formula(text, FUNCTIONS)
