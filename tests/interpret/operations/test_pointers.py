"""Loads and stores through pointers, and their arithmetic."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.support.memory_access import addresses_of
from tests.support.memory_access import run_over
from tests.support.memory_access import site_of
from tilewright.interpret.faults import OutOfBounds
from tilewright.interpret.memory.allocations import Undetermined
from tilewright.interpret.operations.pointers import load_pointer
from tilewright.interpret.operations.pointers import offset_pointer
from tilewright.interpret.operations.pointers import store_pointer

PLACES = st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=3)


def test_lanes_are_loaded_where_the_mask_holds_and_padded_elsewhere():
    tensor = torch.arange(4.0)
    pointers = addresses_of(tensor, 3, 0, 10**6, 1)[None]
    mask = torch.tensor([[True, True, False, True], [False, True, False, False]])
    tile = load_pointer(site_of(tensor), (4,), run_over(tensor, blocks=2), pointers, mask, torch.full((1, 4), -1.0))
    assert tile.tolist() == [[3.0, 0.0, -1.0, 1.0], [-1.0, 0.0, -1.0, -1.0]]


@pytest.mark.parametrize(
    ("undetermined", "value"),
    [
        *((Undetermined.ZERO, 0.0), (Undetermined.ONE, 1.0), (Undetermined.MINUS_ONE, -1.0)),
        *((Undetermined.HIGHEST, torch.finfo().max), (Undetermined.LOWEST, torch.finfo().min)),
    ],
)
def test_masked_lanes_without_padding_are_undetermined(undetermined, value):
    tensor = torch.ones(1)
    run = run_over(tensor)
    run.memory.undetermined = undetermined
    tile = load_pointer(site_of(tensor), (1,), run, torch.tensor([[0]]), torch.tensor([[False]]), None)
    assert tile.tolist() == [[value]]


@pytest.mark.parametrize(
    ("tensor", "value"),
    [
        (torch.tensor([-5], dtype=torch.int8), -5),
        (torch.tensor([True]), True),
        (torch.tensor([2**16 - 1], dtype=torch.uint16), 2**16 - 1),
        (torch.tensor([2**64 - 1], dtype=torch.uint64), 2**64 - 1),
    ],
)
def test_a_uniform_integer_scalar_is_a_python_value(tensor, value):
    found = load_pointer(site_of(tensor), (), run_over(tensor), tensor.data_ptr(), None, None)
    assert (found, type(found)) == (value, type(value))


def test_a_uniform_float_scalar_is_a_tile():
    tensor = torch.tensor([1.5])
    found = load_pointer(site_of(tensor), (), run_over(tensor), tensor.data_ptr(), True, None)
    assert found.tolist() == [1.5]
    assert load_pointer(site_of(tensor), (), run_over(tensor), 0, False, torch.tensor([7.0])).tolist() == [7.0]


@given(PLACES)
def test_loads_are_what_torch_gathers(places):
    tensor = torch.rand(10, dtype=torch.float64)
    index = torch.tensor(places)
    tile = load_pointer(
        site_of(tensor), (4,), run_over(tensor, blocks=len(places)), tensor.data_ptr() + 8 * index, None, None
    )
    assert torch.equal(tile, tensor[index])


@given(PLACES, st.booleans())
def test_stores_are_made_block_after_block_and_lane_after_lane(places, masked):
    tensor, expected = torch.zeros(10), [0.0] * 10
    index = torch.tensor(places)
    values = torch.arange(1.0, 1 + index.numel()).view(index.shape)
    mask = values % 3 != 0 if masked else torch.ones_like(index, dtype=torch.bool)
    for place, value, valid in zip(index.view(-1), values.view(-1), mask.view(-1), strict=True):
        if valid:
            expected[place] = float(value)
    store_pointer(
        site_of(tensor),
        run_over(tensor, blocks=len(places)),
        tensor.data_ptr() + 4 * index,
        values,
        mask if masked else None,
    )
    assert tensor.tolist() == expected


def test_stores_through_a_uniform_pointer_keep_the_last_block():
    tensor = torch.zeros(2, dtype=torch.int32)
    values = torch.tensor([4, 5, 6], dtype=torch.int32)
    store_pointer(site_of(tensor), run_over(tensor, blocks=3), tensor.data_ptr() + 4, values, None)
    assert tensor.tolist() == [0, 6]


def test_an_access_without_mask_outside_of_all_arrays_is_refused():
    tensor = torch.zeros(2)
    run = run_over(tensor)
    with pytest.raises(OutOfBounds, match="a read of 4 bytes 8 bytes before t0"):
        load_pointer(site_of(tensor), (1,), run, addresses_of(tensor, -2)[None], None, None)
    with pytest.raises(OutOfBounds, match="a write of 4 bytes 0 bytes behind the end of t0"):
        store_pointer(site_of(tensor), run, addresses_of(tensor, 2)[None], torch.zeros(1, 1), None)


@pytest.mark.parametrize(
    ("pointer", "offset", "expected"),
    [
        (1000, 3, 1012),
        (1000, 2**64 - 1, 996),  # -1 as uint64
        (1000, torch.tensor([[-1, 2]], dtype=torch.int8), [[996, 1008]]),
        (torch.tensor([[8], [16]]), torch.tensor([[1, 2]]), [[12, 16], [20, 24]]),
        (torch.tensor([8, 16]), 2**64 - 2, [0, 8]),
    ],
)
def test_offsets_count_elements_and_wrap_around(pointer, offset, expected):
    moved = offset_pointer(pointer, offset, 4)
    assert (moved if isinstance(moved, int) else moved.tolist()) == expected
