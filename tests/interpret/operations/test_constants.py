"""Constants of the interpreter: numbers, tables and what is no tile."""

from types import SimpleNamespace

import cuda.tile as ct
import pytest
import torch

from tilewright.interpret import operations  # noqa: F401
from tilewright.interpret.numbers import dtypes
from tilewright.interpret.operations.constants import constant
from tilewright.interpret.translate.lowering import LOWERINGS


def run(opcode, dtype=None, shape=(), **fields):
    """What an operation without operands gives; of no tile if there is no dtype."""
    kind = SimpleNamespace(dtype=dtype, shape=shape) if dtype is not None else object()
    result = SimpleNamespace(get_type=lambda: kind)
    step = LOWERINGS[opcode].handler(SimpleNamespace(result_var=result, **fields))
    assert step.operands == ()
    return step.function()


@pytest.mark.parametrize(
    ("value", "element", "expected"),
    [
        (True, dtypes.INT32, 1),
        (2**32 + 5, dtypes.UINT32, 5),
        (-1, dtypes.UINT64, 2**64 - 1),
        (200, dtypes.INT8, -56),
        (3, dtypes.BOOL, True),
    ],
)
def test_integers_and_bools_are_those_of_python(value, element, expected):
    result = constant(value, element)
    assert result == expected
    assert type(result) is type(expected)


def test_floats_are_tiles_of_one_element():
    assert constant(0.1, dtypes.FLOAT32).shape == (1,)
    assert constant(0.1, dtypes.FLOAT32).item() == torch.tensor(0.1, dtype=torch.float32).item()
    assert constant(1 + 2.0**-11 + 2.0**-40, dtypes.FLOAT16).item() == 1 + 2.0**-10  # not by way of float32
    assert constant(1e9, dtypes.FLOAT16).item() == float("inf")
    assert constant(1 + 2.0**-11, dtypes.TFLOAT32).item() == 1.0


def test_one_number_fills_a_tile_and_tables_keep_their_shape():
    filled = constant(7, dtypes.UINT64, (2, 4))
    assert filled.dtype == torch.int64
    assert filled.tolist() == [[[7] * 4] * 2]
    assert constant(((2**64 - 1, 1), (2, 3)), dtypes.UINT64, (2, 2)).tolist() == [[[-1, 1], [2, 3]]]
    assert constant((True, False), dtypes.BOOL, (2,)).tolist() == [[True, False]]
    assert constant(((0.5,),), dtypes.FLOAT64, (1, 1)).tolist() == [[[0.5]]]


def test_what_is_no_tile_is_itself():
    assert run("typed_const", value="a string") == "a string"
    assert run("typed_const", ct.int16, (2,), value=3).tolist() == [[3, 3]]


def test_counting_wraps():
    assert run("tile_arange", ct.int8, (256,)).tolist() == [[*range(128), *range(-128, 0)]]
    assert run("tile_arange", ct.uint64, (4,)).dtype == torch.int64
    assert run("tile_arange", ct.int64, (4,)).tolist() == [[0, 1, 2, 3]]


def test_placeholders_are_zero():
    assert run("make_dummy", ct.float32, (2,)).tolist() == [[0.0, 0.0]]
    assert run("make_dummy", ct.int32) == 0
    assert run("make_dummy") is None


def test_assignments_pass_values_on():
    value = torch.zeros(1)
    step = LOWERINGS["assign"].handler(SimpleNamespace(value="the variable"))
    assert step.operands == ("the variable",)
    assert step.function(value) is value
