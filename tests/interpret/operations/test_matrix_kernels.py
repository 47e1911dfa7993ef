"""Kernels that multiply matrices, in launches of several blocks, against float64."""

import cuda.tile as ct
import pytest
import torch

from tests.support.computing_kernels import BLOCKS
from tests.support.computing_kernels import close
from tests.support.computing_kernels import launch

MMA = [
    (torch.float16, torch.float16),
    (torch.float16, torch.float32),
    (torch.bfloat16, torch.float32),
    (torch.float32, torch.float32),
    (torch.float64, torch.float64),
    (torch.float8_e4m3fn, torch.float32),
    (torch.float8_e5m2, torch.float16),
    (torch.int8, torch.int32),
    (torch.uint8, torch.int32),
]


@pytest.mark.parametrize(("dtype", "accumulator"), MMA, ids=lambda each: str(each).removeprefix("torch."))
def test_products_of_matrices(dtype, accumulator):
    @ct.kernel
    def kernel(X, Y, Z):
        i = ct.bid(0)
        x = ct.load(X, (i, 0, 0), (1, 8, 16))
        y = ct.load(Y, (0, 0, 0), (1, 16, 4))
        z = ct.load(Z, (i, 0, 0), (1, 8, 4))
        ct.store(Z, (i, 0, 0), ct.mma(x, y, z))

    torch.manual_seed(0)
    if dtype.is_floating_point:
        x, y = torch.randn(BLOCKS, 8, 16).to(dtype), torch.randn(1, 16, 4).to(dtype)
    else:
        x, y = torch.randint(0, 127, (BLOCKS, 8, 16)).to(dtype), torch.randint(0, 127, (1, 16, 4)).to(dtype)
    z = torch.ones(BLOCKS, 8, 4, dtype=accumulator)
    exact = x.to(torch.float64) @ y.to(torch.float64) + 1
    launch(kernel, x, y, z)
    if accumulator is torch.int32:
        assert torch.equal(z, exact.to(torch.int32))
    else:
        close(z, exact, 16, 4)


def test_products_of_tfloat32():
    @ct.kernel
    def kernel(X, Y, Z):
        x = ct.astype(ct.load(X, (0, 0), (8, 16)), ct.tfloat32)
        y = ct.astype(ct.load(Y, (0, 0), (16, 4)), ct.tfloat32)
        ct.store(Z, (0, 0), ct.mma(x, y, ct.zeros((8, 4), ct.float32)))

    x, y, z = torch.randn(8, 16), torch.randn(16, 4), torch.zeros(8, 4)
    launch(kernel, x, y, z, grid=(1,))
    torch.testing.assert_close(z, x @ y, rtol=2e-3, atol=2e-3)


def test_scaled_products_of_matrices():
    @ct.kernel
    def kernel(X, XS, Y, YS, Z):
        i = ct.bid(0)
        x = ct.reshape(ct.load(X, (i, 0, 0), (1, 8, 64)), (8, 64))
        xs = ct.bitcast(ct.load(XS, (0, 0), (8, 2)), ct.float8_e8m0fnu)
        y = ct.load(Y, (0, 0), (64, 4))
        ys = ct.bitcast(ct.load(YS, (0, 0), (2, 4)), ct.float8_e8m0fnu)
        z = ct.mma_scaled(x, xs, y, ys, ct.full((8, 4), 1.0, ct.float32))
        ct.store(Z, (i, 0, 0), ct.reshape(z, (1, 8, 4)))

    torch.manual_seed(0)
    x, y = torch.randn(BLOCKS, 8, 64).to(torch.float8_e4m3fn), torch.randn(64, 4).to(torch.float8_e4m3fn)
    xs, ys = torch.randint(120, 134, (8, 2), dtype=torch.uint8), torch.randint(120, 134, (2, 4), dtype=torch.uint8)
    z = torch.zeros(BLOCKS, 8, 4)
    launch(kernel, x, xs, y, ys, z)
    left = x.to(torch.float64) * (2.0 ** (xs.to(torch.float64) - 127)).repeat_interleave(32, 1)
    right = y.to(torch.float64) * (2.0 ** (ys.to(torch.float64) - 127)).repeat_interleave(32, 0)
    torch.testing.assert_close(z, (left @ right + 1).to(torch.float32))
