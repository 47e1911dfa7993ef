"""Answers are completed before copier sees them."""

import pytest

from tilewright.errors import UsageError
from tilewright.render import complete
from tilewright.render import locate
from tilewright.render import render

SOURCE = locate()


def test_the_gradient_of_a_formula_is_derived():
    answers = complete(SOURCE, {"formula": "x * y", "backward": True})
    assert answers == {"formula": "x * y", "grad_formula": "grad * y; grad * x"}


def test_a_given_gradient_is_kept():
    answers = complete(SOURCE, {"formula": "x * x", "grad_formula": "2 * grad * x", "backward": True})
    assert answers["grad_formula"] == "2 * grad * x"


def test_a_given_gradient_without_backward_is_a_contradiction():
    with pytest.raises(UsageError, match="contradict"):
        complete(SOURCE, {"formula": "x", "grad_formula": "grad", "backward": False})


def test_another_family_keeps_its_flag():
    assert complete(SOURCE, {"family": "softmax", "backward": True}) == {"family": "softmax", "backward": True}


def test_a_wrong_formula_is_refused():
    with pytest.raises(UsageError, match="calls sigmod"):
        complete(SOURCE, {"formula": "x * sigmod(x)"})


def test_a_wrong_epilogue_is_refused():
    with pytest.raises(UsageError, match="calls geluu"):
        complete(SOURCE, {"family": "matmul", "epilogue": "geluu(acc)"})


def test_an_unknown_variant_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="'maxx' is not a variant of reduction") as error:
        complete(SOURCE, {"family": "reduction", "variant": "maxx"})
    assert "did you mean max?" in str(error.value)


@pytest.mark.parametrize("answers", [{}, {"family": "matmul"}])
def test_a_variant_of_another_family_is_refused_with_its_family(answers):
    with pytest.raises(UsageError, match="'rms_norm' is not a variant of") as error:
        complete(SOURCE, {"variant": "rms_norm", **answers})
    assert "--family row_norm" in str(error.value)


def test_an_unknown_variant_without_a_family_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match=r"did you mean argmax\?"):
        complete(SOURCE, {"variant": "argmx"})


def test_of_a_family_without_variants_none_is_expected():
    with pytest.raises(UsageError, match="'maxx' is not a variant of topk") as error:
        complete(SOURCE, {"family": "topk", "variant": "maxx"})
    assert str(error.value).splitlines()[1:] == ["expected none: it has no variants", "leave it out"]


def test_dtypes_are_spelled_out():
    assert complete(SOURCE, {"dtypes": "f32,bf16"}) == {"dtypes": ["float32", "bfloat16"]}


@pytest.mark.parametrize(
    "formula",
    [
        "0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x ** 3)))",
        "alpha=1.5; t = x * alpha; u = t * sigmoid(t); u / (1 + exp(-u * y)) + z ** 3",
        "where(x > 0, x, alpha * (exp(x) - 1)), alpha=1.0",
        "clamp(x, -1, 1) * relu(y) + log1p(z * z)",
    ],
)
def test_the_template_accepts_a_derived_gradient(tmp_path, formula):
    answers = complete(SOURCE, {"op": "my_op", "formula": formula, "backward": True})
    assert render(SOURCE, answers, tmp_path).answers["grad_formula"] == answers["grad_formula"]
