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


def test_scaled_products_of_float4():
    @ct.kernel
    def kernel(X, Y, Scales, Z):
        x = ct.unpack_from_bytes(ct.load(X, (0,), (1024,)), ct.float4_e2m1fn)
        y = ct.unpack_from_bytes(ct.load(Y, (0,), (1024,)), ct.float4_e2m1fn)
        scales = ct.bitcast(ct.load(Scales, (0, 0), (32, 2)), ct.float8_e8m0fnu)
        total = ct.full((32, 32), 0.25, ct.float32)
        z = ct.mma_scaled(
            ct.reshape(x, (32, 64)), scales, ct.reshape(y, (64, 32)), ct.full((2, 32), 1.0, ct.float8_e8m0fnu), total
        )
        ct.store(Z, (0, 0), z)

    # Two to a byte, the first in its low half: 1 and -0.5 all along the rows of x; 3 and 4 along those of y.
    x = torch.full((1024,), 0x92, dtype=torch.uint8)
    y = torch.full((1024,), 0x65, dtype=torch.uint8)
    scales = torch.tensor([128, 126], dtype=torch.uint8).repeat(32, 1)  # 2 and 1/2, each for 32 along K
    z = torch.zeros(32, 32)
    launch(kernel, x, y, scales, z, grid=(1,))
    # Each half of K has 16 of 1 - 0.5: (2 + 1/2) * 16 * 0.5 is 20, times 3 or 4, and the accumulator.
    assert torch.equal(z, torch.tensor([60.25, 80.25]).repeat(32, 16))


def test_casts_of_float4():
    @ct.kernel
    def kernel(X, Numbers, Codes):
        x = ct.unpack_from_bytes(ct.load(X, (0,), (8,)), ct.float4_e2m1fn)
        ct.store(Numbers, (0,), ct.astype(x, ct.float32))
        rounded = ct.astype(ct.load(Numbers, (1,), (16,)), ct.float4_e2m1fn)
        ct.store(Codes, (0,), ct.pack_to_bytes(rounded))

    x = torch.tensor([0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE], dtype=torch.uint8)
    numbers, codes = torch.zeros(32), torch.zeros(8, dtype=torch.uint8)
    numbers[16:] = torch.tensor([0.2, 0.25, 0.3, 1.25, 1.75, 2.5, 3.5, 5.0, 5.1, 1e9, -0.3, -2.6, 0.75, 4.9, -7, 0])
    launch(kernel, x, numbers, codes, grid=(1,))
    positive = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert numbers[:16].tolist() == positive + [-each for each in positive]
    # Ties go to the even mantissa, what is too large to 6: 0 0 .5 1 2 2 4 4 6 6 -.5 -3 1 4 -6 0.
    assert codes.tolist() == [0x00, 0x21, 0x44, 0x66, 0x77, 0xD9, 0x62, 0x0F]
