"""Conversions of the interpreter against rational arithmetic, the compiler's own tables and what an H200 gave."""

import math
from fractions import Fraction

import cuda.tile as ct
import numpy as np
import pytest
import torch
from cuda.tile._bytecode.float import float_from_bits
from cuda.tile._bytecode.float import float_to_bits
from cuda.tile._datatype import dtype_simple_bytecode_type
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from tests.support.exact_rounding import rounded
from tilewright.interpret.numbers import dtypes
from tilewright.interpret.numbers import minifloats
from tilewright.interpret.operations.casts import cast
from tilewright.interpret.operations.constants import constant

FLOATS = [each for each in dtypes.NUMERIC if each.kind == "f" and hasattr(ct, each.name)]
INTEGERS = [each for each in dtypes.NUMERIC if each.kind in "iu"]
ENCODED_MODES = {"float8_e8m0fnu": ["nearest_even", "zero", "positive_inf"]}
MODES = ["nearest_even", "nearest_away", "zero", "negative_inf", "positive_inf"]


def numbers_of(tile, element):
    return (minifloats.decode(tile, element) if element.encoded else tile).to(torch.float64).tolist()


def tile_of(values, element):
    """Values that `element` has, as a tile."""
    exact = torch.tensor(values, dtype=torch.float64)
    return minifloats.encode(exact, element) if element.encoded else exact.to(element.compute)


def numbers(element):
    """Finite floats of a dtype."""
    if element.encoded:
        table = minifloats.decode(torch.arange(256).to(torch.uint8), element).tolist()
        return st.sampled_from([each for each in table if math.isfinite(each)])
    if element.name == "bfloat16":
        wide = st.floats(width=32, allow_nan=False, allow_infinity=False)
        return wide.map(lambda x: torch.tensor(x).to(torch.bfloat16).item()).filter(math.isfinite)
    if element.name == "tfloat32":
        return st.floats(width=16, allow_nan=False, allow_infinity=False)
    near = st.builds(
        lambda m, e, d: math.ldexp(m + d, e),
        st.integers(-4096, 4096),
        st.integers(-40, 12),
        st.sampled_from([0, 2**-30]),
    )
    any_float = st.floats(width=element.bits, allow_nan=False, allow_infinity=False)
    return st.one_of(any_float, near) if element.bits == 64 else any_float


@pytest.mark.parametrize("target", FLOATS, ids=lambda each: each.name)
@pytest.mark.parametrize("source", FLOATS, ids=lambda each: each.name)
def test_floats_are_rounded_once_in_every_mode_of_the_compiler(source, target):
    modes = ENCODED_MODES.get(target.name, ["nearest_even"]) if target.encoded else MODES

    @settings(max_examples=4, deadline=None, database=None)
    @given(st.lists(numbers(source), min_size=1, max_size=15))
    def check(values):
        tile = tile_of(values, source)
        values = numbers_of(tile, source)
        for mode in modes:
            result = cast(source, target, mode)(tile)
            assert result.dtype == target.compute
            expected = [rounded(Fraction(each), target.name, mode) for each in values]
            assert numbers_of(result, target) == expected, mode

    check()


@pytest.mark.parametrize("target", FLOATS, ids=lambda each: each.name)
@pytest.mark.parametrize("source", INTEGERS, ids=lambda each: each.name)
def test_integers_become_floats_with_one_rounding(source, target):
    near_powers = st.builds(
        lambda e, d, s: s * (2**e + d), st.integers(0, 64), st.integers(-130, 130), st.sampled_from([1, -1])
    )
    modulus = source.highest - source.lowest + 1
    fitting = st.one_of(near_powers, st.integers(source.lowest, source.highest)).map(
        lambda x: (x - source.lowest) % modulus + source.lowest
    )

    @settings(max_examples=4, deadline=None, database=None)
    @given(st.lists(fitting, min_size=1, max_size=15))
    def check(values):
        convert = cast(source, target)
        expected = [rounded(Fraction(each), target.name, "nearest_even") for each in values]
        tile = torch.cat([dtypes.as_tensor(each, source) for each in values])
        assert numbers_of(convert(tile), target) == expected
        assert [numbers_of(convert(each), target) for each in values] == [[each] for each in expected]

    check()


@pytest.mark.parametrize("target", [*INTEGERS, dtypes.BOOL], ids=lambda each: each.name)
@pytest.mark.parametrize("source", [*INTEGERS, dtypes.BOOL], ids=lambda each: each.name)
def test_integers_wrap_into_integers(source, target):
    values = sorted({source.lowest, source.highest, 0, 1, source.highest // 2, source.highest // 3, source.lowest // 3})
    numpy_name = {"bool_": "bool"}
    held = np.array(values, dtype=numpy_name.get(source.name, source.name))
    expected = held.astype(numpy_name.get(target.name, target.name)).tolist()
    convert = cast(source, target)
    tile = torch.cat([dtypes.as_tensor(int(each), source) for each in values])
    result = convert(tile)
    assert result.dtype == target.compute
    assert [int(each) % 2**64 for each in result.tolist()] == [int(each) % 2**64 for each in expected]
    scalars = [convert(bool(each) if source is dtypes.BOOL else each) for each in values]
    assert scalars == expected
    assert {type(each) for each in scalars} == {bool if target is dtypes.BOOL else int}


@pytest.mark.parametrize("target", INTEGERS, ids=lambda each: each.name)
@pytest.mark.parametrize("source", FLOATS, ids=lambda each: each.name)
def test_floats_in_range_become_integers_towards_zero(source, target):
    @settings(max_examples=4, deadline=None, database=None)
    @given(st.lists(numbers(source), min_size=1, max_size=15))
    def check(values):
        tile = tile_of(values, source)
        values = numbers_of(tile, source)
        inside = [i for i, each in enumerate(values) if target.lowest <= math.trunc(each) <= target.highest]
        result = cast(source, target)(tile)
        assert result.dtype == target.compute
        assert [result.tolist()[i] % 2**64 for i in inside] == [math.trunc(values[i]) % 2**64 for i in inside]

    check()


BEYOND = [1.9, -1.9, 300.0, -300.0, 3e9, -3e9, 1e20, -1e20, math.inf, -math.inf, math.nan, 4e4, -4e4, 7e4, 200.0, -0.5]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("float32", "int8", [1, -1, 44, -44, -1, 0, -1, 0, -1, 0, 0, -1, 0, -1, -56, 0]),
        ("float32", "uint8", [1, 0, 44, 0, 255, 0, 255, 0, 255, 0, 0, 64, 0, 255, 200, 0]),
        (
            "float32",
            "int16",
            [1, -1, 300, -300, 32767, -32768, 32767, -32768, 32767, -32768, 0, 32767, -32768, 32767, 200, 0],
        ),
        ("float32", "uint16", [1, 0, 300, 0, 65535, 0, 65535, 0, 65535, 0, 0, 40000, 0, 65535, 200, 0]),
        (
            "float32",
            "int32",
            [1, -1, 300, -300, *[2**31 - 1, -(2**31)] * 3, 0, 40000, -40000, 70000, 200, 0],
        ),
        ("float32", "uint32", [1, 0, 300, 0, 3000000000, 0, *[2**32 - 1, 0] * 2, 0, 40000, 0, 70000, 200, 0]),
        (
            "float32",
            "int64",
            [
                1,
                -1,
                300,
                -300,
                3000000000,
                -3000000000,
                *[2**63 - 1, -(2**63)] * 2,
                -(2**63),
                40000,
                -40000,
                70000,
                200,
                0,
            ],
        ),
        ("float32", "uint64", [1, 0, 300, 0, 3000000000, 0, *[2**64 - 1, 0] * 2, 2**63, 40000, 0, 70000, 200, 0]),
        (
            "float64",
            "int32",
            [1, -1, 300, -300, *[2**31 - 1, -(2**31)] * 3, -(2**31), 40000, -40000, 70000, 200, 0],
        ),
    ],
)
def test_floats_beyond_the_range_of_integers_become_what_an_h200_gave(source, target, expected):
    source, target = dtypes.element(getattr(ct, source)), dtypes.element(getattr(ct, target))
    result = cast(source, target)(torch.tensor(BEYOND, dtype=source.compute))
    assert [each % 2**64 for each in result.tolist()] == [each % 2**64 for each in expected]


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
def test_float8_saturates_as_on_an_h200(source):
    values = [448.0, 464.0, 480.0, 1e4, math.inf, -math.inf, math.nan, 57344.0, 1e-10, 2.0**-10, 3 * 2.0**-11]
    source = dtypes.element(getattr(ct, source))
    tile = torch.tensor(values, dtype=torch.float64).to(source.compute)
    assert cast(source, dtypes.FLOAT8_E4M3FN)(tile).tolist() == [
        *[0x7E] * 5, 0xFE, 0x7F, 0x7E, 0, 0, 1
    ]  # fmt: skip
    assert cast(source, dtypes.FLOAT8_E5M2)(tile).tolist()[4:8] == [0x7B, 0xFB, 0x7F, 0x7B]


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
def test_everything_but_zero_is_true_as_on_an_h200(source):
    source = dtypes.element(getattr(ct, source))
    tile = torch.tensor([0.0, -0.0, 1.0, 0.5, math.nan, math.inf], dtype=source.compute)
    assert cast(source, dtypes.BOOL)(tile).tolist() == [False, False, True, True, True, True]


@pytest.mark.parametrize("target", ["float16", "bfloat16", "tfloat32", "float32", "float64"])
@pytest.mark.parametrize("source", ["float16", "bfloat16", "tfloat32", "float32", "float64", "float8_e5m2"])
@pytest.mark.parametrize("mode", MODES)
def test_infinities_and_nan_stay_in_every_mode(source, target, mode):
    source, target = dtypes.element(getattr(ct, source)), dtypes.element(getattr(ct, target))
    if source.encoded:
        tile = torch.tensor([0x7C, 0xFC, 0x7F], dtype=torch.uint8)
    else:
        tile = torch.tensor([math.inf, -math.inf, math.nan], dtype=source.compute)
    result = cast(source, target, mode)(tile).tolist()
    assert result[:2] == [math.inf, -math.inf]
    assert math.isnan(result[2])


@pytest.mark.parametrize("element", [each for each in FLOATS if each.encoded], ids=lambda each: each.name)
def test_small_floats_have_the_numbers_that_the_compiler_gives_them(element):
    kind = dtype_simple_bytecode_type(getattr(ct, element.name))
    codes = list(range(1 << element.bits))
    decoded = minifloats.decode(torch.tensor(codes, dtype=torch.uint8), element).tolist()
    expected = [float_from_bits(code, kind) for code in codes]
    assert list(map(repr, decoded)) == [repr(each).replace("-nan", "nan") for each in expected]


@pytest.mark.parametrize("element", [each for each in FLOATS if each.encoded], ids=lambda each: each.name)
def test_constants_of_small_floats_are_those_of_the_compiler(element):
    kind = dtype_simple_bytecode_type(getattr(ct, element.name))
    values = [0.0, 1.0, 1.5, 0.1, 3.3, 5.0, 447.0, 464.0, 465.0, 57344.0, 61440.0, 1e9, 1e39, math.inf]
    values += [-each for each in values] if not element.name.endswith("fnu") else []
    assert [constant(each, element).item() for each in values] == [float_to_bits(each, kind) for each in values]


def test_tfloat32_keeps_ten_bits_as_on_an_h200():
    values = torch.tensor([1 + 2.0**-11, 1 + 3 * 2.0**-11, 3.4e38, -1 - 2.0**-11, 1 + 2.0**-11 + 2.0**-20])
    assert cast(dtypes.FLOAT32, dtypes.TFLOAT32)(values).tolist() == [
        1.0,
        1.001953125,
        3.3995005992199223e38,
        -1.0,
        1.0009765625,
    ]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("nearest_even", [1.0, 1.015625, -1.0]),
        ("nearest_away", [1.0078125, 1.015625, -1.0078125]),
        ("zero", [1.0, 1.0078125, -1.0]),
        ("negative_inf", [1.0, 1.0078125, -1.0078125]),
        ("positive_inf", [1.0078125, 1.015625, -1.0]),
    ],
)
def test_ties_between_two_numbers(mode, expected):
    # bfloat16 has 7 bits behind the point: 1 + 1/256 and 1 + 3/256 are halfway between two of its numbers.
    x = torch.tensor([1 + 1 / 256, 1 + 3 / 256, -1 - 1 / 256])
    assert cast(dtypes.FLOAT32, dtypes.BFLOAT16, mode)(x).tolist() == expected


@pytest.mark.parametrize("source", [dtypes.INT64, dtypes.UINT64], ids=lambda each: each.name)
def test_integers_of_64_bits_are_rounded_once(source):
    # Just above the middle of two float32; as float64 it is the middle itself, which would be rounded to the even one.
    x = torch.tensor([2**62 + 2**38 + 1, 2**62 + 2**38])
    assert cast(source, dtypes.FLOAT32)(x).tolist() == [2.0**62 + 2.0**39, 2.0**62]


def test_nan_is_what_the_hardware_makes_of_it():
    # PTX, cvt.satfinite: e2m1 has no NaN and takes the largest number, the others have one.
    nan = torch.tensor([math.nan])
    assert cast(dtypes.FLOAT32, dtypes.FLOAT4_E2M1FN)(nan).tolist() == [0b0111]
    assert cast(dtypes.FLOAT32, dtypes.FLOAT8_E4M3FN)(nan).tolist() == [0x7F]
    assert cast(dtypes.FLOAT32, dtypes.FLOAT8_E8M0FNU)(nan).tolist() == [0xFF]
