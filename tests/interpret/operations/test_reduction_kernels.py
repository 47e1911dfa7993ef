"""Kernels that reduce and scan, in launches of several blocks, against torch."""

import cuda.tile as ct
import pytest
import torch

from tests.support.computing_kernels import BLOCKS
from tests.support.computing_kernels import BY_FLOAT
from tests.support.computing_kernels import close
from tests.support.computing_kernels import matrix
from tests.support.computing_kernels import tilewise

REDUCTIONS = {"sum": torch.sum, "prod": torch.prod, "max": torch.amax, "min": torch.amin}


@BY_FLOAT
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_of_floats(name, axis, dtype):
    function = getattr(ct, name)

    def along(x):
        return function(x, axis=axis)

    x = matrix(dtype, 4, 8)
    close(tilewise(along, x, (8, 4)[axis : axis + 1], dtype), REDUCTIONS[name](x.to(torch.float64), dim=axis + 1), 8, 4)


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
def test_reductions_of_everything(name):
    function = getattr(ct, name)

    def everything(x):
        return function(x, keepdims=True)

    x = torch.randint(-3, 4, (BLOCKS, 4, 8), dtype=torch.int32)
    reference = {"sum": torch.sum, "max": torch.amax, "min": torch.amin}.get(name)
    flat = x.reshape(BLOCKS, -1)
    expected = reference(flat, dim=1) if reference else flat.prod(1)
    assert torch.equal(tilewise(everything, x, (1, 1), torch.int32).flatten(), expected.to(torch.int32))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_places_of_extrema(name, axis):
    function = getattr(ct, name)

    def along(x):
        return function(x, axis=axis)

    torch.manual_seed(0)
    x = torch.stack([torch.randperm(32).reshape(4, 8) for _ in range(BLOCKS)]).to(torch.float32)
    expected = getattr(torch, name)(x, dim=axis + 1).to(torch.int32)
    assert torch.equal(tilewise(along, x, (8, 4)[axis : axis + 1], torch.int32), expected)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_and_products(name, axis, reverse):
    function = getattr(ct, name)

    def along(x):
        return function(x, axis=axis, reverse=reverse)

    x = matrix(torch.float32, 4, 8)
    turned = x.to(torch.float64).flip(axis + 1) if reverse else x.to(torch.float64)
    exact = getattr(torch, name)(turned, dim=axis + 1)
    close(tilewise(along, x, (4, 8), torch.float32), exact.flip(axis + 1) if reverse else exact, 64, 4)


def largest_magnitude(x, y):
    return ct.where(ct.abs(x) > ct.abs(y), x, y)


def reduced_with_a_function(x):
    return ct.reduce(x, 1, largest_magnitude, 0.0)


def scanned_with_a_function(x):
    return ct.scan(x, 1, largest_magnitude, 0.0)


def test_reductions_and_scans_with_a_function():
    x = matrix(torch.float32, 4, 8)
    place = x.abs().argmax(2, keepdim=True)
    assert torch.equal(tilewise(reduced_with_a_function, x, (4,), torch.float32), x.gather(2, place)[..., 0])
    running = x.gather(2, x.abs().cummax(2).indices)
    assert torch.equal(tilewise(scanned_with_a_function, x, (4, 8), torch.float32), running)
