"""What rules about tests and benchmarks know of pytest, and of a file that a rule must leave alone."""

import ast
import textwrap
from pathlib import Path

import pytest

from tilewright.rules.edits import fix
from tilewright.rules.engine import check_sources
from tilewright.rules.finding import Finding
from tilewright.rules.registry import all_rules
from tilewright.rules.source import Module
from tilewright.rules.tests import cases
from tilewright.rules.tests.examples import TEST

PATH = Path("tests/ops/test_my_op.py")
LISTS = """
import pytest

_more = [(8, 8)]


class Test_MyOp:
    _shapes = [(1, 2), *_more] + [pytest.param(3, 4, marks=pytest.mark.slow)]

    @pytest.mark.parametrize("m, n", _shapes)
    @pytest.mark.parametrize(("dtype",), [("half",), ("float",)])
    def test_op(self, m, n, dtype):
        assert m

    def helper(self):
        def test_op_inside():
            pass
"""


def module(text: str, path: Path = PATH) -> Module:
    return Module(path, textwrap.dedent(text))


IMPLEMENTATION = """
import torch
from my_ops.backend import register_impl


@register_impl("my_op", backend="cutile")
def my_op(x, out=None, **kwargs):
    return x * 2
"""


def findings(code: str, text: str, path: Path = PATH, kernel: str = "") -> list[Finding]:
    rules = [rule for rule in all_rules() if rule.code == code]
    return list(check_sources({path: text, Path("my_ops/cutile.py"): kernel}, rules).findings)


def test_cases_are_read_from_lists_of_the_class_and_the_module() -> None:
    source = module(LISTS)
    (test,) = cases.tests(source)
    read = {tuple(ast.unparse(case[name]) for name in ("m", "n", "dtype")) for case in cases.cases(source, test)}
    pairs = [("1", "2"), ("8", "8"), ("3", "4")]
    assert read == {(*pair, dtype) for pair in pairs for dtype in ("'half'", "'float'")}


@pytest.mark.parametrize(("name", "expected"), [("test_gelu.py", "gelu"), ("bench_gelu.py", "gelu"), ("gelu.py", None)])
def test_a_file_is_about_the_operator_in_its_name(name: str, expected: str | None) -> None:
    assert cases.operator(module("", Path(name))) == expected


def test_tests_of_other_things_than_operators_are_left_alone() -> None:
    rules = [rule for rule in all_rules() if rule.code.startswith("TW4")]
    text = "def test_parsing():\n    parse('a')\n"
    assert check_sources({Path("tests/cli/test_parse.py"): text}, rules).findings == ()


def test_an_assertion_of_a_helper_counts() -> None:
    helper = "    def _compare(self, kwargs):\n        assert my_op(**kwargs).isfinite().all()\n\n    @pytest"
    text = TEST.replace("self.assertCorrectness(my_op, self.reference, kwargs)", "self._compare(kwargs)")
    assert findings("TW405", text.replace("    @pytest", helper, 1)) == []


def test_a_helper_that_asserts_nothing_does_not_count() -> None:
    helper = "    def _run(self, kwargs):\n        my_op(**kwargs)\n\n    @pytest"
    text = TEST.replace("self.assertCorrectness(my_op, self.reference, kwargs)", "self._run(kwargs)")
    assert [each.code for each in findings("TW405", text.replace("    @pytest", helper, 1))] == ["TW405"]


def test_a_function_of_pytorch_with_the_name_of_the_operator_is_a_reference() -> None:
    text = TEST.replace("return x * 2", "return torch.my_op(x)")
    assert findings("TW406", text) == []


def test_one_of_several_dtypes_in_another_test_is_not_several() -> None:
    text = TEST.replace("[torch.float32, torch.float16, torch.bfloat16]", "[torch.float16]")
    text += "\n    def test_op_large(self):\n        assert my_op(torch.zeros(4, dtype=torch.float32)).sum() == 0\n"
    assert len(findings("TW407", text, kernel="_DTYPES = (torch.float32, torch.float16)\n" + IMPLEMENTATION)) == 1


@pytest.mark.parametrize(
    ("dtypes", "count"), [("(torch.float16,)", 0), ("(torch.bfloat16,)", 1), ("tuple(SUPPORTED)", 1)]
)
def test_the_only_dtype_that_an_implementation_lists_is_all_there_is(dtypes: str, count: int) -> None:
    text = TEST.replace("[torch.float32, torch.float16, torch.bfloat16]", "[torch.float16]")
    assert len(findings("TW407", text, kernel=f"_DTYPES = {dtypes}\n" + IMPLEMENTATION)) == count


def test_no_dtype_is_missing_where_there_is_no_implementation() -> None:
    text = TEST.replace("[torch.float32, torch.float16, torch.bfloat16]", "[torch.float16]")
    assert findings("TW407", text) == []


def test_a_renamed_test_keeps_its_body() -> None:
    text = TEST.replace("def test_op(", "def test_ragged(")
    result = fix(text, lambda changed: findings("TW401", changed))
    assert result.text == TEST.replace("def test_op(", "def test_op_ragged(")


@pytest.mark.parametrize(
    ("rtol", "atol", "count"), [(1e-3, 1e-3, 1), (1e-3, 4e-3, 0), (2.0**-9, 2.0**-9, 0), (0, 0, 0), (1e-9, 1e-9, 1)]
)
def test_tolerances_are_compared_with_the_coarsest_dtype(rtol: float, atol: float, count: int) -> None:
    text = TEST.replace("self.reference, kwargs)", f"self.reference, kwargs, rtol={rtol}, atol={atol})")
    assert len(findings("TW412", text)) == count
