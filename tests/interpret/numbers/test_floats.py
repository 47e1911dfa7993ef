"""Floating-point arithmetic of the interpreter against rational arithmetic."""

import math
from fractions import Fraction

import cuda.tile as ct
import pytest
import torch
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from tests.support.exact_rounding import rounded
from tilewright.interpret.numbers import dtypes
from tilewright.interpret.numbers import floats
from tilewright.interpret.operations.arithmetic import float_arithmetic

ELEMENTS = [dtypes.FLOAT16, dtypes.BFLOAT16, dtypes.FLOAT32, dtypes.FLOAT64]
MODES = ["nearest_even", "zero", "negative_inf", "positive_inf"]
EXACT = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "truediv": lambda x, y: x / y,
    "fma": lambda x, y, z: x * y + z,
}
BY_ELEMENT = pytest.mark.parametrize("element", ELEMENTS, ids=lambda each: each.name)
BY_MODE = pytest.mark.parametrize("mode", MODES)


def numbers(element):
    width = {"bfloat16": 32}.get(element.name, element.bits)
    anywhere = st.floats(width=width, allow_nan=False, allow_infinity=False)
    near = st.builds(lambda m, e: math.ldexp(m, e), st.integers(-(2**7), 2**7), st.integers(-10, 10))
    return st.one_of(anywhere, near).map(lambda x: torch.tensor(x, dtype=element.compute).item()).filter(math.isfinite)


def check(name, element, mode, cases):
    columns = [torch.tensor(column, dtype=element.compute) for column in zip(*cases, strict=True)]
    result = floats.rounded(name, element, mode)(*columns)
    assert result.dtype == element.compute
    expected = [rounded(EXACT[name](*map(Fraction, each)), element.name, mode) for each in cases]
    assert result.tolist() == expected


@BY_ELEMENT
@BY_MODE
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv"])
def test_results_are_rounded_once(name, element, mode):
    @settings(max_examples=5, deadline=None, database=None)
    @given(st.lists(st.tuples(numbers(element), numbers(element)), min_size=1, max_size=10))
    def run(cases):
        check(name, element, mode, [(x, y) for x, y in cases if y or name != "truediv"] or [(1.0, 3.0)])

    run()


@BY_ELEMENT
@BY_MODE
def test_fma_is_rounded_once(element, mode):
    @settings(max_examples=6, deadline=None, database=None)
    @given(st.lists(st.tuples(*[numbers(element)] * 3), min_size=1, max_size=10))
    def run(cases):
        check("fma", element, mode, cases)
        near = [(x, y, -torch.tensor(x * y, dtype=element.compute).item()) for x, y, _ in cases]
        check("fma", element, mode, [each for each in near if math.isfinite(each[2])] or [(1.0, 1.0, -1.0)])

    run()


@BY_ELEMENT
@BY_MODE
def test_roots_are_rounded_once(element, mode):
    @settings(max_examples=6, deadline=None, database=None)
    @given(st.lists(numbers(element).map(abs), min_size=1, max_size=10))
    def run(values):
        result = floats.rounded("sqrt", element, mode)(torch.tensor(values, dtype=element.compute)).tolist()
        for x, root in zip(values, result, strict=True):
            below, above = (Fraction(neighbour(root, element, side)) for side in (-math.inf, math.inf))
            if mode == "nearest_even":
                assert (
                    x == root == 0
                    or ((Fraction(root) + below) / 2) ** 2 <= Fraction(x) <= ((Fraction(root) + above) / 2) ** 2
                )
            elif mode == "positive_inf":
                assert x == root == 0 or below**2 < Fraction(x) <= Fraction(root) ** 2
            else:
                assert Fraction(root) ** 2 <= Fraction(x) < above**2

    run()


@BY_ELEMENT
@BY_MODE
def test_roots_of_negative_numbers_and_infinity(element, mode):
    x = torch.tensor([-1.0, math.inf, 0.0, math.nan], dtype=element.compute)
    result = floats.rounded("sqrt", element, mode)(x).tolist()
    assert result[1:3] == [math.inf, 0.0]
    assert math.isnan(result[0])
    assert math.isnan(result[3])


def neighbour(x, element, side):
    start, end = (torch.tensor(each, dtype=element.compute) for each in (x, side))
    return torch.nextafter(start, end).item()


@BY_ELEMENT
@BY_MODE
def test_infinities_and_nan_are_as_in_the_nearest_mode(element, mode):
    special = torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0, 2.0, -3.0], dtype=element.compute)
    x, y = (each.reshape(-1) for each in torch.meshgrid(special, special, indexing="ij"))
    unusual = ~torch.isfinite(x) | ~torch.isfinite(y) | (y == 0)
    for name, function in (("add", torch.add), ("mul", torch.mul), ("truediv", torch.div)):
        kept = unusual & (x + y != 0) if name == "add" else unusual
        result, expected = floats.rounded(name, element, mode)(x, y)[kept], function(x, y)[kept]
        torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(torch.signbit(result)[expected == expected], torch.signbit(expected)[expected == expected])
    fused = floats.rounded("fma", element, mode)(x, y, torch.ones_like(x))[unusual]
    torch.testing.assert_close(fused, (x * y + 1)[unusual], rtol=0, atol=0, equal_nan=True)


@BY_ELEMENT
@pytest.mark.parametrize(("mode", "negative"), [("negative_inf", True), ("nearest_even", False), ("zero", False)])
def test_sums_that_cancel_are_minus_zero_when_rounded_down_alone(element, mode, negative):
    one, zero = torch.ones(1, dtype=element.compute), torch.zeros(1, dtype=element.compute)
    for result in (
        floats.rounded("add", element, mode)(one, -one),
        floats.rounded("sub", element, mode)(one, one),
        floats.rounded("add", element, mode)(zero, -zero),
        floats.rounded("fma", element, mode)(one, one, -one),
    ):
        assert result.item() == 0
        assert bool(torch.signbit(result)) is negative
    assert not torch.signbit(floats.rounded("add", element, mode)(zero, zero))


def test_directed_modes_give_what_an_h200_gave():
    x, y = torch.tensor([1.0, -1.0, 3.4e38, 1.0]), torch.tensor([2.0**-30, -(2.0**-30), 3.4e38, -1.0])
    largest = 3.4028234663852886e38
    expected = {
        "zero": [1.0, -1.0, largest, 0.0],
        "negative_inf": [1.0, -1.0000001192092896, largest, 0.0],
        "positive_inf": [1.0000001192092896, -1.0, math.inf, 0.0],
    }
    assert {mode: floats.rounded("add", dtypes.FLOAT32, mode)(x, y).tolist() for mode in expected} == expected


def test_subnormal_numbers_are_flushed_on_request_as_on_an_h200():
    x, y = torch.tensor([1e-40, -1e-40, 1.2e-38]), torch.tensor([1e-40, -1e-40, -1.1e-38])
    result = floats.rounded("add", dtypes.FLOAT32, None, flush_to_zero=True)(x, y)
    assert result.tolist() == [0.0, 0.0, torch.tensor(1.2e-38).item()]
    assert torch.signbit(result).tolist() == [False, True, False]
    assert float_arithmetic("max", dtypes.FLOAT32, flush_to_zero=True)(x, torch.tensor(-1.0)).tolist()[:2] == [0, 0]
    assert float_arithmetic("min", dtypes.FLOAT32, flush_to_zero=True)(x, torch.tensor(1.0)).tolist()[:2] == [0, 0]


@BY_ELEMENT
def test_extrema_ignore_nan_unless_told_otherwise(element):
    x = torch.tensor([math.nan, 1.0, 2.0, math.nan], dtype=element.compute)
    y = torch.tensor([1.0, math.nan, 3.0, math.nan], dtype=element.compute)
    least, most = (float_arithmetic(name, element)(x, y).tolist() for name in ("min", "max"))
    assert least[:3] == [1.0, 1.0, 2.0]
    assert most[:3] == [1.0, 1.0, 3.0]
    assert math.isnan(least[3])
    for name in ("min", "max"):
        strict = float_arithmetic(name, element, propagate_nan=True)(x, y)
        assert torch.isnan(strict).tolist() == [True, True, False, True]


@BY_ELEMENT
def test_quotients_are_floored_and_remainders_have_the_sign_of_the_dividend(element):
    x = torch.tensor([5.5, -5.5, 5.5, -5.5], dtype=element.compute)
    y = torch.tensor([3.0, 3.0, -3.0, -3.0], dtype=element.compute)
    assert float_arithmetic("floordiv", element)(x, y).tolist() == [1, -2, -2, 1]
    assert float_arithmetic("c_mod", element)(x, y).tolist() == [2.5, -2.5, 2.5, -2.5]


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "tfloat32"])
def test_floats_that_gpus_only_convert_are_refused(dtype):
    with pytest.raises(NotImplementedError, match=f"add of {dtype} .*\n.*ct.astype"):
        float_arithmetic("add", dtypes.element(getattr(ct, dtype)))
