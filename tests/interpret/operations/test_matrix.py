"""Products of matrices of the interpreter against float64 and integer arithmetic."""

import pytest
import torch

from tilewright.interpret.numbers import dtypes
from tilewright.interpret.numbers import minifloats
from tilewright.interpret.operations.matrix import multiply_add
from tilewright.interpret.operations.matrix import multiply_add_scaled

FLOATS = [
    (dtypes.FLOAT16, dtypes.FLOAT16),
    (dtypes.FLOAT16, dtypes.FLOAT32),
    (dtypes.BFLOAT16, dtypes.FLOAT32),
    (dtypes.FLOAT32, dtypes.FLOAT32),
    (dtypes.TFLOAT32, dtypes.FLOAT32),
    (dtypes.FLOAT64, dtypes.FLOAT64),
    (dtypes.FLOAT8_E4M3FN, dtypes.FLOAT16),
    (dtypes.FLOAT8_E4M3FN, dtypes.FLOAT32),
    (dtypes.FLOAT8_E5M2, dtypes.FLOAT32),
]


def random_tile(element, *shape):
    values = torch.randn(shape, dtype=torch.float64)
    return minifloats.encode(values, element) if element.encoded else values.to(element.compute)


def numbers(tile, element):
    return (minifloats.decode(tile, element) if element.encoded else tile).to(torch.float64)


@pytest.mark.parametrize(("element", "accumulator"), FLOATS, ids=lambda each: each.name)
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize(("left", "right", "total"), [(1, 1, 1), (3, 1, 1), (1, 3, 1), (1, 1, 3), (3, 3, 3)])
def test_floats(element, accumulator, batch, left, right, total):
    torch.manual_seed(0)
    x, y = random_tile(element, left, *batch, 8, 16), random_tile(element, right, *batch, 16, 4)
    z = random_tile(accumulator, total, *batch, 8, 4)
    result = multiply_add(element, element, accumulator, 16)(x, y, z)
    assert result.dtype == accumulator.compute
    exact = numbers(x, element) @ numbers(y, element) + z.to(torch.float64)
    close = {16: 2e-3, 32: 1e-5, 64: 1e-13}[accumulator.bits]
    torch.testing.assert_close(result.to(torch.float64), exact, rtol=close, atol=close)


@pytest.mark.parametrize("x", [dtypes.INT8, dtypes.UINT8], ids=lambda each: each.name)
@pytest.mark.parametrize("y", [dtypes.INT8, dtypes.UINT8], ids=lambda each: each.name)
@pytest.mark.parametrize("depth", [4, 512, 4096])
def test_integers_are_exact_and_wrap(x, y, depth):
    left = torch.full((1, 2, depth), x.lowest or x.highest).to(x.compute)
    right = torch.randint(y.lowest, y.highest + 1, (3, depth, 4)).to(y.compute)
    total = torch.full((1, 2, 4), 2**31 - 5, dtype=torch.int32)
    result = multiply_add(x, y, dtypes.INT32, depth)(left, right, total)
    exact = (left.to(torch.int64)[..., None] * right.to(torch.int64)[:, None]).sum(2) + total
    assert result.dtype == torch.int32
    assert torch.equal(result, exact.to(torch.int32))


@pytest.mark.parametrize(
    ("element", "scale", "neighbours"),
    [
        (dtypes.FLOAT8_E4M3FN, dtypes.FLOAT8_E8M0FNU, 32),
        (dtypes.FLOAT8_E5M2, dtypes.FLOAT8_E8M0FNU, 32),
        (dtypes.FLOAT4_E2M1FN, dtypes.FLOAT8_E8M0FNU, 16),
        (dtypes.FLOAT4_E2M1FN, dtypes.FLOAT8_E4M3FN, 16),
    ],
    ids=lambda each: getattr(each, "name", str(each)),
)
def test_each_scale_is_for_neighbours_along_the_inner_axis(element, scale, neighbours):
    torch.manual_seed(0)
    x, y = random_tile(element, 1, 4, 64), random_tile(element, 3, 64, 8)
    x_scale, y_scale = random_tile(scale, 1, 4, 64 // neighbours), random_tile(scale, 3, 64 // neighbours, 8)
    total = torch.randn(1, 4, 8)
    result = multiply_add_scaled(element, scale, element, scale)(x, x_scale, y, y_scale, total)
    left = numbers(x, element).reshape(1, 4, -1, neighbours) * numbers(x_scale, scale)[..., None]
    right = numbers(y, element).reshape(3, -1, neighbours, 8) * numbers(y_scale, scale)[:, :, None]
    exact = torch.einsum("bmgk,bgkn->bmn", left.expand(3, -1, -1, -1), right) + total
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, exact.to(torch.float32))
