"""Reductions and scans of the interpreter against torch and Python."""

import itertools

import pytest
import torch

from tilewright.interpret.operations.reductions import reduce
from tilewright.interpret.operations.reductions import scan


def add(x, y):
    return (x + y,)


def compose(a, c, b, d):
    """Of affine maps x -> a x + b, the earlier first: what does not commute."""
    return a * c, b * c + d


def first_of_largest(x, y, i, j):
    take = (x > y) | ((x == y) & (i < j))
    return torch.where(take, x, y), torch.where(take, i, j)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("blocks", [1, 3])
def test_sums_are_those_of_torch(axis, blocks):
    x = torch.randint(-99, 99, (blocks, 4, 1, 8))
    (result,) = reduce(add, (x,), axis)
    assert torch.equal(result, x.sum(axis + 1))
    (running,) = scan(add, (x,), axis, False)
    assert torch.equal(running, x.cumsum(axis + 1))
    (backwards,) = scan(add, (x,), axis, True)
    assert torch.equal(backwards, x.flip(axis + 1).cumsum(axis + 1).flip(axis + 1))


def test_sums_are_rounded_to_the_dtype_of_the_tile():
    x = torch.full((1, 4096), 1.0, dtype=torch.float16)
    x[0, 0] = 4096
    (result,) = reduce(add, (x,), 0)
    assert result.dtype == torch.float16
    (overflowing,) = reduce(add, (torch.full((1, 4), 60000.0, dtype=torch.float16),), 0)
    assert overflowing.item() == float("inf")


@pytest.mark.parametrize("reverse", [False, True])
def test_order_is_kept_for_functions_that_do_not_commute(reverse):
    a, b = torch.randint(-3, 4, (2, 8)), torch.randint(-3, 4, (2, 8))
    for block in range(2):
        maps = list(zip(a[block].tolist(), b[block].tolist(), strict=True))
        maps = maps[::-1] if reverse else maps
        expected = list(itertools.accumulate(maps, lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1])))
        expected = expected[::-1] if reverse else expected
        result = scan(compose, (a, b), 0, reverse)
        assert list(zip(*(each[block].tolist() for each in result), strict=True)) == expected
        if not reverse:
            assert tuple(each[block].item() for each in reduce(compose, (a, b), 0)) == expected[-1]


def test_several_tiles_are_reduced_together_and_meet_those_of_one_block():
    x, index = torch.randint(0, 5, (3, 16)), torch.arange(16)[None]
    largest, place = reduce(first_of_largest, (x, index), 0)
    assert torch.equal(largest, x.amax(1))
    assert torch.equal(place, torch.tensor([row.index(max(row)) for row in x.tolist()]))
    running, _ = scan(first_of_largest, (x, index), 0, False)
    assert torch.equal(running, x.cummax(1).values)


@pytest.mark.parametrize("constant", [7, torch.tensor([7])])
def test_functions_may_return_constants(constant):
    x = torch.arange(8).reshape(2, 4)
    assert reduce(lambda x, y: (constant,), (x,), 0)[0].expand(2).tolist() == [7, 7]
    assert scan(lambda x, y: (constant,), (x,), 0, False)[0].tolist() == [[0, 7, 7, 7], [4, 7, 7, 7]]


def test_one_element_is_its_own_reduction():
    x = torch.tensor([[5], [6]])
    assert reduce(add, (x,), 0)[0].tolist() == [5, 6]
    assert scan(add, (x,), 0, True)[0].tolist() == [[5], [6]]
