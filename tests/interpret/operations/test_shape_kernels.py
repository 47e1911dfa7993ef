"""Kernels that convert, pack and move elements, in launches of several blocks, against torch."""

import cuda.tile as ct
import pytest
import torch

from tests.support.computing_kernels import BLOCKS
from tests.support.computing_kernels import INTEGERS
from tests.support.computing_kernels import SIZE
from tests.support.computing_kernels import floats
from tests.support.computing_kernels import launch

ARRAYS = {
    "bool_": torch.bool,
    **{each: getattr(torch, each) for each in INTEGERS},
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
}


@pytest.mark.parametrize("source", ARRAYS)
def test_a_dtype_converts_to_every_other(source):
    count = len(ARRAYS)

    @ct.kernel
    def kernel(X, results):
        x = ct.load(X, (ct.bid(0),), (SIZE,))
        for k in ct.static_iter(range(count)):
            result = results[k]
            ct.store(result, (ct.bid(0),), ct.astype(x, result.dtype))

    x = torch.tensor([0, 1, 2, 3, 7, 12, 96, 112] * 8, dtype=torch.float64).to(ARRAYS[source])
    results = tuple(torch.zeros(BLOCKS * SIZE, dtype=torch.uint8).to(each) for each in ARRAYS.values())
    launch(kernel, x, results)
    for result in results:
        expected = x.to(torch.float64).to(result.dtype)
        assert torch.equal(result.to(torch.float64), expected.to(torch.float64)), result.dtype


def through_bytes(x):
    return ct.unpack_from_bytes(ct.pack_to_bytes(x), ct.int16)


def test_bytes():
    result = torch.zeros(BLOCKS * SIZE * 2, dtype=torch.int16)

    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, (ct.bid(0),), through_bytes(ct.load(X, (ct.bid(0),), (SIZE,))))

    x = floats(torch.float32)
    launch(kernel, x, result)
    assert torch.equal(result, x.view(torch.int16))


def test_movement_of_elements():
    @ct.kernel
    def kernel(X, Z):
        i = ct.bid(0)
        x = ct.reshape(ct.load(X, (i, 0, 0), (1, 4, 8)), (4, 8))
        turned = ct.permute(ct.transpose(x), (1, 0))
        half = ct.extract(turned, (i % 2, 0), (2, 8))
        joined = ct.cat((half, ct.broadcast_to(ct.expand_dims(ct.arange(8, dtype=ct.int32), 0), (2, 8))), 0)
        ct.store(Z, (i, 0, 0), ct.reshape(joined, (1, 4, 8)))

    x = torch.randint(0, 99, (BLOCKS, 4, 8), dtype=torch.int32)
    z = torch.zeros_like(x)
    launch(kernel, x, z)
    for i in range(BLOCKS):
        expected = torch.cat((x[i, i % 2 * 2 :][:2], torch.arange(8, dtype=torch.int32).expand(2, 8)))
        assert torch.equal(z[i], expected)


@pytest.mark.skipif(not hasattr(ct, "insert"), reason="cuda-tile 1.6 begins to insert")
def test_parts_are_inserted():
    @ct.kernel
    def kernel(X, Z):
        i = ct.bid(0)
        x = ct.reshape(ct.load(X, (i, 0, 0), (1, 4, 8)), (4, 8))
        replaced = ct.insert(x, (0, i), ct.full((1, 2), -1, ct.int32))
        ct.store(Z, (i, 0, 0), ct.reshape(replaced, (1, 4, 8)))

    x = torch.randint(0, 99, (BLOCKS, 4, 8), dtype=torch.int32)
    z = torch.zeros_like(x)
    launch(kernel, x, z)
    for i in range(BLOCKS):
        x[i, 0, 2 * i : 2 * i + 2] = -1
    assert torch.equal(z, x)
