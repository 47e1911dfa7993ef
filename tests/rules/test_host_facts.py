"""What rules about host functions know: calls, grids, guards, and when they stay silent."""

import ast
import textwrap
import time
from pathlib import Path

import pytest

from tilewright.rules.engine import check_sources
from tilewright.rules.finding import Finding
from tilewright.rules.hosts.calls import calls
from tilewright.rules.hosts.grids import division
from tilewright.rules.registry import all_rules
from tilewright.rules.source import Module

HEAD = """
import cuda.tile as ct
import torch


@ct.kernel
def _double_kernel(X, Y):
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (1024,)) * 2)
"""


def module(text: str) -> Module:
    return Module(Path("host.py"), textwrap.dedent(text))


def findings(code: str, text: str) -> list[Finding]:
    rules = [rule for rule in all_rules() if rule.code == code]
    return list(check_sources({Path("host.py"): HEAD + textwrap.dedent(text)}, rules).findings)


@pytest.mark.parametrize(
    ("text", "size", "block", "up"),
    [
        ("ct.cdiv(n, B)", "n", "B", True),
        ("triton.cdiv(n, 128)", "n", "128", True),
        ("_ceil_div(n, B)", "n", "B", True),
        ("math.ceil(n / B)", "n", "B", True),
        ("(n + B - 1) // B", "n", "B", True),
        ("(n + (B - 1)) // B", "n", "B", True),
        ("(n + 127) // 128", "n", "128", True),
        ("-(-n // B)", "n", "B", True),
        ("max(1, ct.cdiv(n, B))", "n", "B", True),
        ("n // B", "n", "B", False),
    ],
)
def test_the_ways_to_count_blocks(text: str, size: str, block: str, up: bool) -> None:
    source = module(text)
    found = division(source, source.tree.body[0].value)
    assert (ast.unparse(found.size), ast.unparse(found.block), found.up) == (size, block, up)


@pytest.mark.parametrize("text", ["n", "n * B", "f(n, B)", "n / B", "min(n, B)"])
def test_what_counts_no_blocks(text: str) -> None:
    source = module(text)
    assert division(source, source.tree.body[0].value) is None


def test_a_starred_argument_fills_what_the_others_leave() -> None:
    source = module("def f(a, b, c, d):\n    pass\n\ndef g(x):\n    f(1, *x.shape, 2)")
    passed = {
        name: [ast.unparse(each) for each in calls(source).passed(source.functions["f"], name)] for name in "abcd"
    }
    assert passed == {"a": ["1"], "b": ["*x.shape"], "c": ["*x.shape"], "d": ["2"]}


def test_apply_calls_forward_without_the_context() -> None:
    source = module(
        """
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, n):
                return x

        def double(x):
            return Double.apply(x, 3)
        """
    )
    forward = next(each for each in source.nodes(ast.FunctionDef) if each.name == "forward")
    assert [ast.unparse(each) for each in calls(source).passed(forward, "n")] == ["3"]
    assert [each.name for each in calls(source).callers(forward)] == ["forward", "double"]


LAUNCH = """
def _launch(x, y):
    ct.launch(torch.cuda.current_stream(x.device), (ct.cdiv(x.numel(), 1024),), _double_kernel, (x, y))


def double(x, y):
    if x.numel():
        _launch(x, y)
"""


def test_a_guard_of_one_caller_is_none_of_another() -> None:
    assert findings("TW308", LAUNCH) == []
    assert len(findings("TW308", LAUNCH + "\n\ndef twice(x, y):\n    _launch(x, y)\n")) == 1


def test_a_comparison_with_one_is_no_guard() -> None:
    assert len(findings("TW308", LAUNCH.replace("if x.numel():", "if x.shape[0] > 1:"))) == 1


def test_a_name_that_is_made_of_itself_ends() -> None:
    text = """
    def double(x):
        y = y.contiguous()
        ct.launch(torch.cuda.current_stream(x.device), (1,), _double_kernel, (x, y))
    """
    assert findings("TW311", text) == []


def test_a_shift_by_a_huge_number_takes_no_memory() -> None:
    text = """
    def double(x, y):
        grid = (1 << 100000000000,)
        ct.launch(torch.cuda.current_stream(x.device), grid, _double_kernel, (x, y))
    """
    assert len(findings("TW303", text)) == 1


def test_many_branches_take_no_more_time_than_few() -> None:
    branches = "".join(
        f"        if x.shape[{n}]:\n            a, b = (b if c else a) + b * a, a + a\n" for n in range(40)
    )
    text = f"""
    def double(x, y, c):
        a = b = 2
{branches}
        grid = (a * b + a, ct.cdiv(a, b), b // a)
        ct.launch(torch.cuda.current_stream(x.device), grid, _double_kernel, (x, y))
    """
    start = time.perf_counter()
    for code in ("TW301", "TW302", "TW303", "TW304", "TW308", "TW309"):
        findings(code, text)
    assert time.perf_counter() - start < 5


def test_a_kernel_assigned_later_is_not_launched_before() -> None:
    text = """
    @ct.kernel
    def _add_kernel(X, Y, Z):
        ct.store(Z, (ct.bid(0),), ct.load(X, (ct.bid(0),), (1024,)) + ct.load(Y, (ct.bid(0),), (1024,)))


    def both(x, y, z):
        kernel = _double_kernel
        ct.launch(torch.cuda.current_stream(x.device), (1,), kernel, (x, y))
        kernel = _add_kernel
        ct.launch(torch.cuda.current_stream(x.device), (1,), kernel, (x, y, z))
    """
    assert findings("TW305", text) == []


@pytest.mark.parametrize(("test", "count"), [("< 10", 0), ("== (9, 0)", 0), (">= 10", 1), ("== 10", 1)])
def test_hints_count_where_compute_capability_ten_comes(test: str, count: int) -> None:
    text = f"""
    def _hints(device):
        if torch.cuda.get_device_capability(device)[0] {test}:
            return dict(num_ctas=2, occupancy=2)
        return dict(num_ctas=1, occupancy=2)
    """
    assert len(findings("TW315", text)) == count


def test_allocations_views_and_concatenations_are_no_computation() -> None:
    text = """
    def double(x, y):
        both = torch.cat([x.reshape(-1), torch.zeros(8, device=x.device)]).sum().mean() + torch.sqrt(x).view(-1)
        ct.launch(torch.cuda.current_stream(x.device), (1,), _double_kernel, (both, y))
    """
    assert findings("TW322", text) == []


@pytest.mark.parametrize(("head", "count"), [("def main():", 0), ("def show():", 0), ("def double(x):", 1)])
@pytest.mark.parametrize("code", ["TW308", "TW320"])
def test_data_that_a_script_makes_for_itself_is_no_argument(code: str, head: str, count: int) -> None:
    text = f"""
    {head}
        z = torch.ones(8, device="cuda")
        y = torch.empty_like(z)
        ct.launch(torch.cuda.current_stream(), (ct.cdiv(z.numel(), 1024),), _double_kernel, (z, y))
    """
    assert len(findings(code, text)) == count


AFFINE = """
class Affine(torch.autograd.Function):
    @staticmethod
    def forward({inputs}):
        return x * weight + bias

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, dy):
        return {returned}
"""


@pytest.mark.parametrize(
    ("inputs", "returned", "count"),
    [
        ("x, weight, bias", "dx, dw, db", 0),
        ("x, weight, bias", "dw, db", 1),
        ("x, weight, bias", "dw, dx, db", 1),
        ("x, weight, bias=0.0", "dx, dw", 0),  # apply may be called without it
        ("x, weight, bias=0.0", "dw, dx", 1),
    ],
)
def test_with_a_context_of_its_own_all_inputs_of_forward_have_a_gradient(
    inputs: str, returned: str, count: int
) -> None:
    assert len(findings("TW327", AFFINE.format(inputs=inputs, returned=returned))) == count


def test_a_gradient_that_may_be_of_two_inputs_is_no_finding() -> None:
    inputs = "x, weight_first, weight_last"
    assert findings("TW327", AFFINE.format(inputs=inputs, returned="dx, dweight_last, dweight")) == []


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    return __builtins__",
        "globals()['FACTOR'] = 2\n\n\ndef f():\n    return FACTOR",
        "def f():\n    with raises(NameError):\n        FACTOR",
        "def f():\n    raises(NameError, lambda: FACTOR)",
        "class Kinds:\n    vars()['FACTOR'] = 2\n    other = FACTOR",
        "def f():\n    return _('text')",
    ],
)
def test_names_that_appear_otherwise_or_are_expected_to_be_missing_are_no_finding(text: str) -> None:
    assert findings("TW324", f"from pytest import raises\n\n\n{text}\n") == []


@pytest.mark.parametrize(("said", "count"), [("out", 1), ("x", 0)])
def test_where_a_result_may_be_stored_says_nothing_about_arguments(said: str, count: int) -> None:
    text = f"""
    def double(x, out):
        if not {said}.is_contiguous():
            raise ValueError("must be contiguous")
        ct.launch(torch.cuda.current_stream(), (ct.cdiv(x.numel(), 1024),), _double_kernel, (x.view(-1), out))
    """
    assert len(findings("TW310", text)) == count


@pytest.mark.parametrize(("rows", "count"), [("1", 1), ("64", 0)])
def test_rows_one_by_one_are_too_many_for_the_second_axis(rows: str, count: int) -> None:
    text = f"""
    def double(x, y):
        grid = (1, ct.cdiv(x.numel(), {rows}))
        ct.launch(torch.cuda.current_stream(), grid, _double_kernel, (x, y))
    """
    assert len(findings("TW304", text)) == count


@pytest.mark.parametrize(("given", "count"), [("plan.x, plan.y", 0), ("plan.y, plan.x", 1)])
def test_fields_are_known_by_their_names(given: str, count: int) -> None:
    text = f"""
    def double(plan):
        ct.launch(torch.cuda.current_stream(), plan.grid, _double_kernel, ({given}))
    """
    assert len(findings("TW306", text)) == count
