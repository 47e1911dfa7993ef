"""Texts of the command line become answers, or an error that names the nearest thing that is known."""

from pathlib import Path

import pytest

from tilewright.errors import UsageError
from tilewright.render.answers import check_choices
from tilewright.render.answers import parse_data
from tilewright.render.answers import parse_dtypes
from tilewright.render.answers import parse_skips
from tilewright.render.answers import read_questions
from tilewright.render.answers import refuse_contradictions

QUESTIONS = read_questions(Path(__file__).parents[2] / "template")


def test_computed_questions_cannot_be_answered():
    assert {"op", "family", "formula", "dtypes", "skip"} <= QUESTIONS.keys()
    assert not {"source", "destination", "partials", "template_version", "interactive"} & QUESTIONS.keys()


def test_values_have_the_type_of_the_question():
    answers = parse_data(["op=gelu", "bias=true", "dtypes=[float32]", "skip={tests: why}", "formula=x*2"], QUESTIONS)
    assert answers == {
        "op": "gelu",
        "bias": True,
        "dtypes": ["float32"],
        "skip": {"tests": "why"},
        "formula": "x*2",
    }


def test_a_value_may_contain_an_equals_sign():
    assert parse_data(["formula=x * a, a=1.0"], QUESTIONS) == {"formula": "x * a, a=1.0"}


@pytest.mark.parametrize("text", ["float32", "[float32]"])
def test_one_dtype_may_be_written_without_brackets(text):
    assert parse_data([f"dtypes={text}"], QUESTIONS) == {"dtypes": ["float32"]}


@pytest.mark.parametrize(
    "pair",
    [
        *("dtypes=", "dtypes=1", "dtypes=[1]", "dtypes=[[a]]", "dtypes={a: b}", "backward=maybe", "backward=1"),
        *("bias=[1]", "skip=", "skip=none", "skip=[tests]"),
    ],
)
def test_a_value_of_another_type_is_refused_with_an_example(pair):
    key = pair.partition("=")[0]
    with pytest.raises(UsageError, match=f"is no answer to {key}") as error:
        parse_data([pair], QUESTIONS)
    assert f"expected for example {key}=" in str(error.value)


def test_two_values_for_one_key_are_refused():
    assert parse_data(["formula=x", "formula=x"], QUESTIONS) == {"formula": "x"}
    with pytest.raises(UsageError, match="--data formula is given twice"):
        parse_data(["formula=x", "formula=y"], QUESTIONS)
    with pytest.raises(UsageError, match="--skip tests is given twice"):
        parse_skips(["tests=a", "tests=b"])


def test_an_option_and_a_value_that_differ_are_refused():
    refuse_contradictions({"op": "gelu"}, {"op": "gelu", "family": "gated"}, by="--data")
    with pytest.raises(UsageError, match="the op is gelu and, with --data, silu"):
        refuse_contradictions({"op": "gelu"}, {"op": "silu"}, by="--data")


def test_an_unknown_key_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="'famly' is not a question") as error:
        parse_data(["famly=softmax"], QUESTIONS)
    assert "did you mean family?" in str(error.value)


def test_an_answer_that_is_a_number():
    assert parse_data(["rank=2"], QUESTIONS) == {"rank": 2}
    check_choices({"rank": 2}, QUESTIONS)
    with pytest.raises(UsageError, match="7 is not a rank"):
        check_choices({"rank": 7}, QUESTIONS)
    with pytest.raises(UsageError, match="expected for example rank=2"):
        parse_data(["rank=two"], QUESTIONS)


def test_a_pair_without_equals_sign_is_refused():
    with pytest.raises(UsageError, match="has no `=`"):
        parse_data(["family"], QUESTIONS)


@pytest.mark.parametrize(
    ("answers", "what", "hint"),
    [
        ({"family": "softmx"}, "'softmx' is not a family", "softmax"),
        ({"dtypes": ["float32", "bfloat61"]}, "'bfloat61' is not a dtype", "bfloat16"),
        ({"precision": "tf23"}, "'tf23' is not a precision", "tf32"),
        ({"layout": "standalon"}, "'standalon' is not a layout", "standalone"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_nearest(answers, what, hint):
    with pytest.raises(UsageError, match=what) as error:
        check_choices(answers, QUESTIONS)
    assert f"did you mean {hint}?" in str(error.value)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("f32,f16,bf16", ["float32", "float16", "bfloat16"]),
        ("torch.float32, torch.bfloat16", ["float32", "bfloat16"]),
        ("fp32,f32,float32", ["float32"]),
        (["F64", "int32"], ["float64", "int32"]),
        ("", []),
    ],
)
def test_short_names_of_dtypes(text, names):
    assert parse_dtypes(text) == names


def test_a_skipped_step_needs_a_reason():
    assert parse_skips(["benchmark=no baseline = none"]) == {"benchmark": "no baseline = none"}
    with pytest.raises(UsageError, match="has no reason"):
        parse_skips(["benchmark="])


def test_an_unknown_step_is_refused():
    with pytest.raises(UsageError, match="'bench' is not a step") as error:
        parse_skips(["bench=none"])
    assert "did you mean benchmark?" in str(error.value)
