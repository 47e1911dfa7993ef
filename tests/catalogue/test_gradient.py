"""Derived gradients are those of torch.autograd in float64."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from tilewright.catalogue.formula import parse_formula
from tilewright.catalogue.functions import read_functions
from tilewright.catalogue.gradient import gradient_formula
from tilewright.errors import UsageError

torch = pytest.importorskip("torch")
FUNCTIONS = read_functions(Path(__file__).parents[2] / "template" / "_partials")
KNOWN = sorted(name for name, function in FUNCTIONS.items() if function.gradient and name != "where")
PRIVATE = {"_gelu_tanh": partial(torch.nn.functional.gelu, approximate="tanh")}  # what the reference file defines
SPELLED = {name: eval(function.torch, {"torch": torch, **PRIVATE}) for name, function in FUNCTIONS.items()}


def evaluate(text: str, values: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The results of a formula or of gradients, by Python's own evaluation."""
    scope = {**SPELLED, **values}
    results = []
    for clause in text.split(";"):
        name, is_local, value = clause.strip().rpartition(" = ")
        if is_local:
            scope[name] = eval(value, {}, scope)
        else:
            results.append(eval(value, {}, scope))
    return results


def check(text: str, *points: float) -> None:
    formula = parse_formula(text, FUNCTIONS)
    gradients = gradient_formula(formula, FUNCTIONS)
    scalars = {name: torch.tensor(float(value), dtype=torch.float64) for name, value in formula.scalars}
    tensors = [torch.tensor(points, dtype=torch.float64).roll(shift) for shift in range(len(formula.tensors))]
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in zip(formula.tensors, tensors, strict=True)}
    body = "; ".join([*(f"{name} = {value}" for name, value in formula.locals), str(formula.result)])
    [result] = evaluate(body, leaves | scalars)
    grad = torch.linspace(0.5, 2.0, len(points), dtype=torch.float64)
    expected = torch.autograd.grad(result, tuple(leaves.values()), grad, materialize_grads=True)
    if not all(1e-12 < float(g.abs().max()) < 1e12 or not g.any() for g in (result.detach(), *expected)):
        return  # undefined there, or badly conditioned
    found = evaluate(gradients, {name: leaf.detach() for name, leaf in leaves.items()} | scalars | {"grad": grad})
    for computed, wanted in zip(found, expected, strict=True):
        # A choice between numbers alone has PyTorch's default dtype
        torch.testing.assert_close(computed.expand_as(wanted), wanted, rtol=1e-6, atol=1e-9, check_dtype=False)


@pytest.mark.parametrize(
    "text",
    [
        "x * y + z",
        "x - y * 2",
        "x / y",
        "x ** 3",
        "x ** 0.5",
        "x ** y",
        "2 ** x",
        "-x ** 2",
        "x ** -2",
        "x * alpha, alpha=0.3",
        "t = x * y; u = t * t; u + t",
        "where(x > 1, x * y, y)",
        "where(x > y, x, y) * where(x > 1.0, 2.0, 3.0)",
        "x + where(y > 1, 1.0, 0.0)",
        "x + where(x < x + x - x, x, where(x < y, x, x) ** 2)",
        "x / (1 + exp(-beta * x)), beta=1.702",
    ],
)
def test_operators_scalars_and_locals(text):
    check(text, 0.4, 1.3, 2.1)


@pytest.mark.parametrize("name", KNOWN)
def test_every_rule_of_the_table(name):
    takes = FUNCTIONS[name].takes
    arguments = [str(0.3 * number) if letter == "s" else "wxyz"[number] for number, letter in enumerate(takes)]
    # Two ranges: some functions are only defined inside (-1, 1), some have a kink at zero.
    check(f"{name}({', '.join(arguments)}) * w", 0.2, 0.7, 0.4)
    check(f"{name}({', '.join(arguments)})", -0.3, 0.9, -1.7)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    if depth == 0:
        return draw(st.sampled_from(["x", "y", "alpha", "0.5 * x", "2 * alpha", "1.5 * y"]))
    function = draw(st.sampled_from([name for name in KNOWN if FUNCTIONS[name].arguments == 1]))
    shapes = ["({} + {})", "({} - {})", "{} * {}", "{} / ({})", "(-{})", "({}) ** 2", "({}) ** -1", "({}) ** 0.5"]
    shape = draw(st.sampled_from([*shapes, f"{function}(x + {{}})", "where(x < {}, {}, {})"]))
    return shape.format(*(draw(expressions(depth=depth - 1)) for _ in range(shape.count("{}"))))


@settings(max_examples=150, deadline=None)
@given(expressions(), st.lists(st.floats(0.1, 2.5), min_size=3, max_size=3))
def test_composed_formulas(expression, points):
    check(f"x + {expression}" + "; alpha=0.7" * ("alpha" in expression), *points)


@pytest.mark.parametrize(
    ("text", "gradient"),
    [
        ("x * y + z", "grad * y; grad * x; grad"),
        ("x ** 3", "grad * 3 * x ** 2"),
        ("x - y", "grad; -grad"),
        ("where(x > 0, x, alpha * x), alpha=0.1", "where(x > 0, grad, grad * alpha)"),
        ("t = x * y; t * t", "t = x * y; grad * t * y * 2; grad * t * x * 2"),
        ("x * sigmoid(x)", "grad * (sigmoid(x) + x * sigmoid(x) * (1.0 - sigmoid(x)))"),
    ],
)
def test_gradients_are_short(text, gradient):
    assert gradient_formula(parse_formula(text, FUNCTIONS), FUNCTIONS) == gradient


def test_a_function_without_a_rule_says_how_to_go_on():
    functions = {name: function for name, function in FUNCTIONS.items() if name != "exp"}
    functions["exp"] = replace(FUNCTIONS["exp"], gradient=())
    with pytest.raises(UsageError, match="the gradient of exp is not known") as error:
        gradient_formula(parse_formula("exp(x)", functions), functions)
    assert "--grad-formula" in str(error.value)


def test_long_gradients_share_named_parts():
    text = "0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x ** 3)))"
    gradient = gradient_formula(parse_formula(text, FUNCTIONS), FUNCTIONS)
    assert gradient.count("tanh") == 1
    assert all(len(clause) < 92 for clause in gradient.split(";"))
    check(text, -1.5, 0.4, 2.0)
