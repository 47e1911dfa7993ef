"""What tests of kernels that compute share: launches of several blocks, and numbers to compute with."""

import cuda.tile as ct
import numpy as np
import pytest
import torch

from tilewright.interpret.launch import Launcher
from tilewright.interpret.settings import Settings

BLOCKS, SIZE = 4, 16
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
BY_FLOAT = pytest.mark.parametrize("dtype", FLOATS, ids=lambda each: str(each).removeprefix("torch."))
BY_INTEGER = pytest.mark.parametrize("dtype", INTEGERS)


def launch(kernel, *arguments, grid=(BLOCKS,), arch="sm_100"):
    Launcher(Settings(arch=arch)).launch(0, grid, kernel, arguments)


def elementwise(function, *operands, dtype):
    """What `function` makes of tiles of the operands, one for each block."""
    result = torch.zeros(BLOCKS * SIZE, dtype=dtype)
    if len(operands) == 1:

        @ct.kernel
        def unary(X, Z):
            ct.store(Z, (ct.bid(0),), function(ct.load(X, (ct.bid(0),), (SIZE,))))

        launch(unary, *operands, result)
    else:

        @ct.kernel
        def binary(X, Y, Z):
            x = ct.load(X, (ct.bid(0),), (SIZE,))
            y = ct.load(Y, (ct.bid(0),), (SIZE,))
            ct.store(Z, (ct.bid(0),), function(x, y))

        launch(binary, *operands, result)
    return result


def close(result, exact, units=2, terms=1 / 64):
    """Within `units` of rounding of the float64 values `exact`, which are sums of numbers as large as `terms`."""
    unit = torch.finfo(result.dtype).eps * units
    expected = exact.to(result.dtype).to(torch.float64)
    torch.testing.assert_close(result.to(torch.float64), expected, rtol=unit, atol=unit * terms)


def floats(dtype, low=-3.0, high=3.0):
    torch.manual_seed(0)
    return (torch.rand(BLOCKS * SIZE, dtype=torch.float64) * (high - low) + low).to(dtype)


def integers(dtype, nonzero=False):
    """Every magnitude of a dtype, as numpy and torch see it."""
    generator = np.random.default_rng(0)
    info = np.iinfo(dtype)
    values = generator.integers(info.min, info.max, BLOCKS * SIZE, dtype=dtype, endpoint=True)
    values[::3] = generator.integers(0, 50, len(values[::3])).astype(dtype)
    values[:4] = [info.min, info.max, 0, 1]
    generator.shuffle(values)
    values = np.where(values == 0, 3, values).astype(dtype) if nonzero else values
    return values, as_tensor(values)


def as_tensor(array):
    return torch.from_numpy(array.view(f"i{array.itemsize}")).view(getattr(torch, str(array.dtype)))


def as_numpy(tensor, dtype):
    return tensor.view(getattr(torch, f"int{np.dtype(dtype).itemsize * 8}")).numpy().view(dtype)


def matrix(dtype, *shape):
    torch.manual_seed(1)
    return (torch.randn(BLOCKS, *shape, dtype=torch.float64) * 2).to(dtype)


def tilewise(function, x, shape, dtype):
    """What `function` makes of the matrix that each block has of `x`."""
    result = torch.zeros(BLOCKS, *shape, dtype=dtype)
    tile, start = tuple(x.shape[1:]), (0,) * len(shape)

    @ct.kernel
    def kernel(X, Z):
        value = function(ct.reshape(ct.load(X, (ct.bid(0), 0, 0), (1, *tile)), tile))
        ct.store(Z, (ct.bid(0), *start), ct.reshape(value, (1, *shape)))

    launch(kernel, x, result)
    return result
