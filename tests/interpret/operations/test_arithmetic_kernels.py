"""Kernels that compute element by element, in launches of several blocks, against torch and numpy."""

import math

import cuda.tile as ct
import numpy as np
import pytest
import torch

from tests.support.computing_kernels import BLOCKS
from tests.support.computing_kernels import BY_FLOAT
from tests.support.computing_kernels import BY_INTEGER
from tests.support.computing_kernels import INTEGERS
from tests.support.computing_kernels import SIZE
from tests.support.computing_kernels import as_numpy
from tests.support.computing_kernels import as_tensor
from tests.support.computing_kernels import close
from tests.support.computing_kernels import elementwise
from tests.support.computing_kernels import floats
from tests.support.computing_kernels import integers
from tests.support.computing_kernels import launch

UNARY = {
    "exp": (-3, 3),
    "exp2": (-3, 3),
    "log": (0.1, 9),
    "log2": (0.1, 9),
    "sin": (-3, 3),
    "cos": (-3, 3),
    "tan": (-1, 1),
    "sinh": (-3, 3),
    "cosh": (-3, 3),
    "tanh": (-3, 3),
    "sqrt": (0, 9),
    "rsqrt": (0.1, 9),
    "floor": (-9, 9),
    "ceil": (-9, 9),
    "abs": (-9, 9),
    "negative": (-9, 9),
}


@BY_FLOAT
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_floats(name, dtype):
    x = floats(dtype, *UNARY[name])
    close(elementwise(getattr(ct, name), x, dtype=dtype), getattr(torch, name)(x.to(torch.float64)))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "int64"])
def test_functions_of_integers_are_computed_in_float32(dtype):
    x = torch.arange(BLOCKS * SIZE).to(getattr(torch, dtype))
    close(elementwise(ct.sqrt, x, dtype=torch.float32), torch.arange(BLOCKS * SIZE, dtype=torch.float64).sqrt())


@BY_FLOAT
def test_nan_is_found(dtype):
    x = floats(dtype)
    x[::3] = math.nan
    assert torch.equal(elementwise(ct.isnan, x, dtype=torch.bool), x.isnan())


BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "truediv": torch.div,
    "floordiv": torch.floor_divide,
    "mod": torch.remainder,
    "atan2": torch.atan2,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
}


@BY_FLOAT
@pytest.mark.parametrize("name", BINARY)
def test_arithmetic_of_floats(name, dtype):
    x, y = floats(dtype), floats(dtype, 0.5, 4.0)
    close(elementwise(getattr(ct, name), x, y, dtype=dtype), BINARY[name](x.to(torch.float64), y.to(torch.float64)))


@BY_FLOAT
def test_powers(dtype):
    x, y = floats(dtype, 0.1, 3.0), floats(dtype)
    close(elementwise(ct.pow, x, y, dtype=dtype), x.to(torch.float64) ** y.to(torch.float64), units=4)
    n = (torch.arange(BLOCKS * SIZE) % 7 - 3).to(torch.int32)
    signed = x * (n % 2 * 2 - 1)
    close(elementwise(ct.pow, signed, n, dtype=dtype), signed.to(torch.float64) ** n.to(torch.float64), units=4)


COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


@BY_FLOAT
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_of_floats(name, dtype):
    x, y = floats(dtype).round(), floats(dtype).round().roll(1)
    x[::5] = math.nan
    expected = COMPARISONS[name](x.to(torch.float64).numpy(), y.to(torch.float64).numpy())
    assert elementwise(getattr(ct, name), x, y, dtype=torch.bool).tolist() == expected.tolist()


@BY_INTEGER
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_of_integers(name, dtype):
    x, tx = integers(dtype)
    y = np.where(np.arange(len(x)) % 4 == 0, x, np.roll(x, 1))
    result = elementwise(getattr(ct, name), tx, as_tensor(y), dtype=torch.bool)
    assert result.tolist() == COMPARISONS[name](x, y).tolist()


INTEGER_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    # tileiras has no floor division of unsigned integers.
    [(name, dtype) for name in INTEGER_BINARY for dtype in INTEGERS if (name, dtype[0]) != ("floordiv", "u")],
)
def test_arithmetic_of_integers(name, dtype):
    x, tx = integers(dtype)
    y = integers(dtype, nonzero=True)[0][::-1].copy()
    with np.errstate(over="ignore"):
        expected = INTEGER_BINARY[name](x, y)
    result = elementwise(getattr(ct, name), tx, as_tensor(y), dtype=tx.dtype)
    assert as_numpy(result, dtype).tolist() == expected.tolist()


@BY_INTEGER
def test_division_rounded_up(dtype):
    x, tx = integers(dtype)
    y, ty = integers(dtype, nonzero=True)
    result = as_numpy(elementwise(ct.cdiv, tx, ty, dtype=tx.dtype), dtype).tolist()
    bits, lowest = np.dtype(dtype).itemsize * 8, int(np.iinfo(dtype).min)
    exact = [-(-a // b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert result == [(each - lowest) % 2**bits + lowest for each in exact]


@BY_INTEGER
@pytest.mark.parametrize("name", ["bitwise_lshift", "bitwise_rshift"])
def test_shifts(name, dtype):
    x, tx = integers(dtype)
    bits = np.dtype(dtype).itemsize * 8
    counts = (np.arange(len(x)) % bits).astype(dtype)
    expected = np.left_shift(x, counts) if name == "bitwise_lshift" else np.right_shift(x, counts)
    result = elementwise(getattr(ct, name), tx, as_tensor(counts), dtype=tx.dtype)
    assert as_numpy(result, dtype).tolist() == expected.tolist()


@BY_INTEGER
def test_functions_of_integers(dtype):
    x, tx = integers(dtype)
    assert as_numpy(elementwise(ct.bitwise_not, tx, dtype=tx.dtype), dtype).tolist() == np.invert(x).tolist()
    assert as_numpy(elementwise(ct.negative, tx, dtype=tx.dtype), dtype).tolist() == np.negative(x).tolist()
    magnitudes = np.abs(x.view(f"i{x.itemsize}")).view(dtype)
    assert as_numpy(elementwise(ct.abs, tx, dtype=tx.dtype), dtype).tolist() == magnitudes.tolist()


def test_bools():
    x, y = torch.arange(BLOCKS * SIZE) % 2 == 0, torch.arange(BLOCKS * SIZE) % 3 == 0
    assert torch.equal(elementwise(ct.bitwise_and, x, y, dtype=torch.bool), x & y)
    assert torch.equal(elementwise(ct.bitwise_xor, x, y, dtype=torch.bool), x ^ y)
    assert torch.equal(elementwise(ct.bitwise_not, x, dtype=torch.bool), ~x)
    assert torch.equal(elementwise(ct.abs, x, dtype=torch.bool), x)
    assert torch.equal(elementwise(ct.negative, x, dtype=torch.int32), -x.to(torch.int32))


def quotient_and_remainder(x, y):
    quotient, remainder = divmod(x, y)
    return quotient * 1000 + remainder


@pytest.mark.skipif(not hasattr(ct, "insert"), reason="cuda-tile 1.6 begins to know divmod")
def test_divmod():
    x = torch.arange(-32, 32, dtype=torch.int32)
    y = torch.arange(64, dtype=torch.int32) % 7 - 10
    expected = [a // b * 1000 + a % b for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert elementwise(quotient_and_remainder, x, y, dtype=torch.int32).tolist() == expected


def larger_or_minus_one(x, y):
    return ct.where(x > y, x, -1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int8, torch.int64])
def test_where(dtype):
    x, y = floats(torch.float32).round().to(dtype), floats(torch.float32).roll(1).round().to(dtype)
    assert torch.equal(elementwise(larger_or_minus_one, x, y, dtype=dtype), torch.where(x > y, x, -1))


def inward(exact):
    """float64 numbers rounded to float32 towards zero."""
    nearest = exact.to(torch.float32)
    return torch.where(
        nearest.abs().to(torch.float64) > exact.abs(), torch.nextafter(nearest, torch.zeros_like(nearest)), nearest
    )


def towards_zero(x, y):
    return ct.mul(ct.add(x, y, rounding_mode=ct.RoundingMode.RZ), 1.0, flush_to_zero=True)


def test_rounding_modes_and_flushing():
    x, y = floats(torch.float32), floats(torch.float32, -1e-9, 1e-9).roll(1)
    exact = x.to(torch.float64) + y.to(torch.float64)
    assert torch.equal(elementwise(towards_zero, x, y, dtype=torch.float32), inward(exact))
    tiny = torch.full((BLOCKS * SIZE,), 1e-41)
    assert not elementwise(towards_zero, tiny, tiny, dtype=torch.float32).any()


def root_towards_zero(x):
    return ct.sqrt(x, rounding_mode=ct.RoundingMode.RZ)


def test_rounding_mode_of_a_root():
    x = floats(torch.float32, 0.1, 9)
    exact = x.to(torch.float64).sqrt()
    assert torch.equal(elementwise(root_towards_zero, x, dtype=torch.float32), inward(exact))


def flushed_power(x):
    return ct.exp2(x, flush_to_zero=True)


def test_flushing_of_a_function():
    x = torch.tensor([-130.0, -120.0] * (BLOCKS * SIZE // 2))
    expected = torch.tensor([0.0, 2.0**-120] * (BLOCKS * SIZE // 2))
    assert torch.equal(elementwise(flushed_power, x, dtype=torch.float32), expected)


def test_constants():
    @ct.kernel
    def kernel(Z):
        table = ct.astile(((1.5, 2.5), (3.5, -0.1)), dtype=ct.float16)
        ct.store(Z, (0, 0), table + ct.ones((2, 2), ct.float16) + ct.zeros((2, 2), ct.float16))

    z = torch.zeros(2, 2, dtype=torch.float16)
    launch(kernel, z, grid=(1,))
    assert torch.equal(z, torch.tensor([[1.5, 2.5], [3.5, -0.1]], dtype=torch.float16) + 1)


def test_scalars_of_every_block():
    @ct.kernel
    def kernel(Z, n: ct.Constant[int]):
        i = ct.bid(0)
        wide = ct.uint64(i) * 0xFFFF_FFFF_FFFF_FFFF
        shifted = ct.bitwise_rshift(wide, ct.uint64(60))
        ct.store(
            Z, (i,), ct.astype(shifted, ct.int64) * 1000 + ct.int64(i // 3 * 100 + (i - n) % 3 * 10 + ct.cdiv(i, 2))
        )

    z = torch.zeros(BLOCKS, dtype=torch.int64)
    launch(kernel, z, 5)
    expected = [((-i % 2**64) >> 60) * 1000 + i // 3 * 100 + (i - 5) % 3 * 10 + -(-i // 2) for i in range(BLOCKS)]
    assert z.tolist() == expected
