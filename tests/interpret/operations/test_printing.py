"""Formats of C, with what C prints for them."""

import ctypes
import math

import cuda.tile as ct
import pytest
import torch
from hypothesis import given
from hypothesis import strategies

from tilewright.interpret.launch import Launcher
from tilewright.interpret.operations.printing import parse


def printed(c_format, *values):
    text, formatters = parse(c_format)
    return text % tuple(form(value) for form, value in zip(formatters, values, strict=True))


def printed_by_c(c_format, value):
    """What the C library makes of a number."""
    buffer = ctypes.create_string_buffer(400)
    argument = ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(value)
    ctypes.CDLL(None).snprintf(buffer, len(buffer), c_format.encode(), argument)
    return buffer.value.decode()


def formats(kinds, lengths):
    parts = (
        strategies.sampled_from(["", "0", " ", "#", "+", "-"]),
        strategies.sampled_from(["", "1", "12"]),
        strategies.sampled_from(["", ".0", ".3"]),
        strategies.sampled_from(lengths),
        strategies.sampled_from(kinds),
    )
    return strategies.tuples(*parts).map(lambda parts: "%" + "".join(parts))


@given(formats("eEfFgG", ["", "l"]), strategies.floats(width=32).map(lambda x: math.nan if math.isnan(x) else x))
def test_floats_are_printed_as_c_prints_them(c_format, value):
    assert printed(c_format, value) == printed_by_c(c_format, value)


@given(formats("diu", ["", "h", "hh", "l", "ll"]), strategies.integers(-(2**63), 2**63 - 1))
def test_integers_are_printed_as_c_prints_them(c_format, value):
    assert printed(c_format, value) == printed_by_c(c_format, value)


@pytest.mark.parametrize(
    ("c_format", "value", "expected"),
    [
        ("%x", -3, "fffffffd"),
        ("%llX", -1, "F" * 16),
        ("%#x", 255, "0xff"),
        ("%o", 8, "10"),
        ("%#o", 8, "010"),
        ("%a", 1 / 3, "0x1.5555555555555p-2"),
        ("%a", 1.0, "0x1p+0"),
        ("%8a|", 0.0, "  0x0p+0|"),
        ("%-8A|", 1.0, "0X1P+0  |"),
        ("%u", True, "1"),
    ],
)
def test_other_conversions(c_format, value, expected):
    assert printed(c_format, value) == expected


def test_percent_signs_and_text_stay():
    assert printed("100%% of %s{x}".replace("%s", "%d"), 5) == "100% of 5{x}"


def test_tiles_are_printed_as_nested_lists():
    @ct.kernel
    def kernel(X):
        ct.printf("%d then %.1f\n", ct.arange(4, dtype=ct.int32), ct.load(X, (0, 0), (2, 2)))
        print(ct.full((1, 1), -1, ct.int64), ct.full((2,), 255, ct.uint8), ct.arange(2, dtype=ct.int32) > 0)

    lines = []
    Launcher(output=lines.append).launch(0, (1,), kernel, (torch.tensor([[0.25, 1.0], [2.0, -3.0]]),))
    assert "".join(lines) == "[0, 1, 2, 3] then [[0.2, 1.0], [2.0, -3.0]]\n[[-1]] [255, 255] [0, 1]\n"


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (ct.float16, 0.1, "0.099976"),
        (ct.bfloat16, 3.0, "3.000000"),
        (ct.float8_e4m3fn, 1.5, "1.500000"),
        (ct.uint64, 2**64 - 1, str(2**64 - 1)),
        (ct.int64, -(2**63), str(-(2**63))),
        (ct.uint32, 2**32 - 1, str(2**32 - 1)),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_every_dtype_is_printed(dtype, value, expected):
    @ct.kernel
    def kernel(X):
        print(ct.full((1,), value, dtype))

    lines = []
    Launcher(output=lines.append).launch(0, (1,), kernel, (torch.zeros(1),))
    assert "".join(lines).strip("[]\n") == expected


def test_blocks_print_in_their_order():
    @ct.kernel
    def kernel(X):
        i = ct.bid(0)
        ct.printf("block %d of %02d\n", i, ct.num_blocks(0))
        print(f"x={ct.load(X, (i,), (2,))}", i > 0)

    printed = []
    Launcher(output=printed.append).launch(0, (2,), kernel, (torch.tensor([0.5, 1.0, 1.5, 2.0]),))
    assert "".join(printed) == ("block 0 of 02\nx=[0.500000, 1.000000] 0\nblock 1 of 02\nx=[1.500000, 2.000000] 1\n")


def test_kernels_print_to_standard_output(capsys):
    @ct.kernel
    def kernel(X):
        ct.printf("hello %d\n", ct.bid(0))

    Launcher().launch(0, (2,), kernel, (torch.zeros(1),))
    assert capsys.readouterr().out == "hello 0\nhello 1\n"


@pytest.mark.parametrize(("form", "text"), [("%08.2f", "     inf"), ("%-8f|", "inf     |"), ("%08e", "     inf")])
def test_infinity_is_padded_by_spaces(form, text):  # as the C standard says of the flag 0
    pattern, [formatted] = parse(form)
    assert pattern % formatted(math.inf) == text
