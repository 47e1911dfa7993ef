"""Integer arithmetic of the interpreter against numpy, in the true dtype."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from tilewright.interpret.numbers import dtypes
from tilewright.interpret.numbers import integers

ELEMENTS = [each for each in dtypes.NUMERIC if each.kind in "iu"]
BY_NAME = pytest.mark.parametrize("element", ELEMENTS, ids=lambda each: each.name)


def numbers(element):
    near = [element.lowest, element.lowest + 1, -2, -1, 0, 1, 2, 3, element.highest - 1, element.highest]
    inside = [each for each in near if element.lowest <= each <= element.highest]
    return st.one_of(st.sampled_from(inside), st.integers(element.lowest, element.highest), st.integers(0, 100))


def pairs(element):
    return st.lists(st.tuples(numbers(element), numbers(element)), min_size=1, max_size=20)


def tile(values, element):
    memory = torch.from_numpy(np.array(values, dtype=element.name).view(np.dtype(f"i{element.bits // 8}")))
    return dtypes.from_storage(memory.view(element.storage), element)


def values(result, element):
    return dtypes.to_storage(result, element).numpy().view(element.name).tolist()


def check(function, element, cases, expected):
    """On tiles, on scalars, and on one of each, with the type that the contract says."""
    left, right = tile([x for x, _ in cases], element), tile([y for _, y in cases], element)
    assert values(function(left, right), element) == expected
    assert function(left, right).dtype == element.compute
    for (x, y), each in zip(cases, expected, strict=True):
        result = function(x, y)
        assert type(result) is int
        assert result == each
        assert values(function(tile([x], element), y), element) == [each]
        assert values(function(x, tile([y], element)), element) == [each]


@BY_NAME
@pytest.mark.parametrize("name", ["add", "sub", "mul", "min", "max"])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_arithmetic_wraps(name, element, data):
    cases = data.draw(pairs(element))
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[name]
    left, right = (np.array(each, dtype=element.name) for each in zip(*cases, strict=True))
    check(integers.arithmetic(name, element), element, cases, function(left, right).tolist())


def divisions(element):
    """What the compiler has: quotients of unsigned integers are not rounded down."""
    return ["truncdiv", "cdiv", "c_mod", *(["floordiv"] if element.kind == "i" else [])]


@pytest.mark.parametrize(
    ("name", "element"),
    [pytest.param(name, each, id=f"{name}-{each.name}") for each in ELEMENTS for name in divisions(each)],
)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_division_rounds_as_its_name_says(name, element, data):
    cases = [(x, y) for x, y in data.draw(pairs(element)) if y] or [(7, 2)]
    exact = {
        "floordiv": lambda x, y: x // y,
        "truncdiv": lambda x, y: (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1),
        "cdiv": lambda x, y: -(-x // y),
        "c_mod": lambda x, y: (abs(x) % abs(y)) * (-1 if x < 0 else 1),
    }[name]
    modulus = 1 << element.bits
    expected = [(exact(x, y) - element.lowest) % modulus + element.lowest for x, y in cases]
    check(integers.arithmetic(name, element), element, cases, expected)


@BY_NAME
def test_division_by_zero_neither_fails_nor_depends_on_the_kind_of_value(element):
    cases = [(0, 0), (7, 0), (element.lowest, 0), (element.highest, 0)]
    ones = element.highest if element.kind == "u" else -1
    check(integers.arithmetic("truncdiv", element), element, cases, [ones] * 4)
    check(integers.arithmetic("c_mod", element), element, cases, [ones] * 4)
    for name in divisions(element):
        function = integers.arithmetic(name, element)
        check(function, element, cases, [function(x, y) for x, y in cases])


def test_division_by_zero_gives_what_an_h200_gave():
    cases = [(7, 0), (-7, 0), (0, 0), (-(2**31), -1)]
    check(integers.arithmetic("floordiv", dtypes.INT32), dtypes.INT32, cases, [-1, -2, -1, -(2**31)])
    check(integers.arithmetic("cdiv", dtypes.INT32), dtypes.INT32, cases, [0, -1, -1, -(2**31)])
    check(integers.arithmetic("c_mod", dtypes.INT32), dtypes.INT32, cases, [-1, -1, -1, 0])


@BY_NAME
@pytest.mark.parametrize("name", ["and_", "or_", "xor"])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_bits(name, element, data):
    cases = data.draw(pairs(element))
    function = {"and_": np.bitwise_and, "or_": np.bitwise_or, "xor": np.bitwise_xor}[name]
    left, right = (np.array(each, dtype=element.name) for each in zip(*cases, strict=True))
    check(integers.bitwise(name, element), element, cases, function(left, right).tolist())


@BY_NAME
@pytest.mark.parametrize("name", ["lshift", "rshift"])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_shifts_beyond_the_width_shift_everything_out(name, element, data):
    counts = st.one_of(st.integers(0, min(2 * element.bits, element.highest)), numbers(element))
    cases = data.draw(st.lists(st.tuples(numbers(element), counts), min_size=1, max_size=20))
    modulus = 1 << element.bits

    def exact(x, y):
        count = min(y % modulus, 200)
        return (x << count) if name == "lshift" else x >> count

    expected = [(exact(x, y) - element.lowest) % modulus + element.lowest for x, y in cases]
    check(integers.shift(name, element), element, cases, expected)


@BY_NAME
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_comparisons(name, element, data):
    cases = data.draw(pairs(element))
    function = integers.comparison(name, element)
    expected = [getattr(int, f"__{name}__")(x, y) for x, y in cases]
    left, right = tile([x for x, _ in cases], element), tile([y for _, y in cases], element)
    assert function(left, right).tolist() == expected
    for (x, y), each in zip(cases, expected, strict=True):
        assert function(x, y) is each
        assert function(tile([x], element), y).tolist() == [each]
        assert function(x, tile([y], element)).tolist() == [each]


@BY_NAME
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_one_operand(element, data):
    cases = data.draw(st.lists(numbers(element), min_size=1, max_size=20))
    array = np.array(cases, dtype=element.name)
    for function, expected in (
        (integers.negative(element), np.negative(array)),
        (integers.absolute(element), np.abs(array.view(f"i{element.bits // 8}")).view(element.name)),
        (integers.invert(element), np.invert(array)),
    ):
        assert values(function(tile(cases, element)), element) == expected.tolist()
        assert [function(each) for each in cases] == expected.tolist()


def test_magnitudes_take_unsigned_numbers_for_signed_as_an_h200_did():
    assert integers.absolute(dtypes.UINT8)(tile([200, 100, 128, 255], dtypes.UINT8)).tolist() == [56, 100, 128, 1]
    assert integers.absolute(dtypes.UINT32)(2**31 + 5) == 2147483643


def test_bools():
    truth, lie = torch.tensor([True]), torch.tensor([False])
    assert integers.bitwise("xor", dtypes.BOOL)(True, True) is False
    assert integers.bitwise("and_", dtypes.BOOL)(truth, False).tolist() == [False]
    assert integers.invert(dtypes.BOOL)(True) is False
    assert integers.invert(dtypes.BOOL)(lie).tolist() == [True]
    assert integers.absolute(dtypes.BOOL)(truth).dtype == torch.bool
    assert integers.comparison("lt", dtypes.BOOL)(lie, truth).tolist() == [True]


def test_operations_that_integers_lack_are_none():
    assert integers.arithmetic("truediv", dtypes.INT32) is None
    assert integers.arithmetic("floordiv", dtypes.UINT32) is None
