"""How operations of the compiler's IR choose their functions, and what they refuse."""

from types import SimpleNamespace

import cuda.tile as ct
import pytest
import torch

from tilewright.interpret import operations  # noqa: F401
from tilewright.interpret.faults import UnsupportedOperation
from tilewright.interpret.numbers import dtypes
from tilewright.interpret.operations.arithmetic import where
from tilewright.interpret.operations.functions import unary
from tilewright.interpret.translate.lowering import LOWERINGS


def variable(dtype, shape=()):
    return SimpleNamespace(get_type=lambda: SimpleNamespace(dtype=dtype, shape=shape))


def function(opcode, **fields):
    return LOWERINGS[opcode].handler(SimpleNamespace(**fields)).function


def binary(name, dtype, **fields):
    defaults = {"rounding_mode": None, "flush_to_zero": False}
    return function("raw_binary_arith", fn=name, lhs=variable(dtype), rhs=variable(dtype), **defaults | fields)


def test_modes_and_flags_reach_the_function():
    one, tiny = torch.tensor([1.0]), torch.tensor([2.0**-30])
    assert binary("add", ct.float32, rounding_mode=ct.RoundingMode.RP)(one, tiny).item() == 1 + 2.0**-23
    assert (
        binary("mul", ct.float32, flush_to_zero=True)(torch.tensor([2.0**-100]), torch.tensor([2.0**-40])).item() == 0
    )
    nan = torch.tensor([float("nan")])
    for name in ("max", "min"):
        assert binary(name, ct.float32)(one, nan).item() == 1
        assert binary(name, ct.float32, propagate_nan=True)(one, nan).isnan()
    fused = {name: variable(ct.float32) for name in ("lhs", "rhs", "acc", "result_var")}
    multiply_add = function("fma", rounding_mode=None, flush_to_zero=False, **fused)
    x = torch.tensor([1 + 2.0**-23])
    assert multiply_add(x, x, -(x * x)).item() == 2.0**-46
    upwards = function("fma", rounding_mode=ct.RoundingMode.RP, flush_to_zero=False, **fused)
    assert upwards(one, one, tiny).item() == 1 + 2.0**-23
    flushed = function("fma", rounding_mode=None, flush_to_zero=True, **fused)
    assert flushed(torch.tensor([2.0**-100]), torch.tensor([2.0**-40]), torch.tensor([0.0])).item() == 0


def test_rounding_mode_of_a_cast_reaches_the_function():
    def cast(mode):
        return function("tile_astype", x=variable(ct.float32), result_var=variable(ct.float16), rounding_mode=mode)(
            torch.tensor([1 + 3 * 2.0**-12])
        ).item()

    # float16 has 10 bits behind the point.
    assert (cast(None), cast(ct.RoundingMode.RN), cast(ct.RoundingMode.RZ)) == (1 + 2.0**-10, 1 + 2.0**-10, 1.0)


def test_integer_powers_keep_the_sign():
    power = function("raw_fpowi", base=variable(ct.float32), exponent=variable(ct.int32))
    x = torch.tensor([-2.0, 0.0, 1.5, float("nan")])
    assert power(x, 3).tolist()[:3] == [-8.0, 0.0, 3.375]
    assert power(x, 0).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert power(x[:2], torch.tensor([-1, 2], dtype=torch.int32)).tolist() == [-0.5, 0.0]


def test_choice_by_a_uniform_condition_takes_either_value_as_it_is():
    tile = torch.arange(3)
    assert where(dtypes.INT64)(True, tile, 5) is tile
    assert where(dtypes.INT64)(False, tile, 5) == 5
    assert where(dtypes.UINT64)(tile > 1, 2**64 - 1, tile).tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: binary("truediv", ct.int32), "truediv of int32\ninstall a release"),
        (lambda: binary("hypot", ct.float32), "hypot of float32"),
        (lambda: unary("exp", dtypes.INT32), "exp of int32"),
        (lambda: unary("erf", dtypes.FLOAT32), "erf of float32"),
        (lambda: unary("exp", dtypes.TFLOAT32), "exp of tfloat32"),
        (
            lambda: function("raw_cmp", fn="lt", lhs=variable(ct.float8_e5m2), rhs=variable(ct.float8_e5m2)),
            "a comparison of float8_e5m2",
        ),
    ],
)
def test_what_gpus_do_not_compute_is_refused_by_name(build, message):
    with pytest.raises(UnsupportedOperation, match=message):
        build()
