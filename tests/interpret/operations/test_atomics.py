"""Atomic operations of many lanes at once against numpy, one lane after another."""

import numpy as np
import pytest
import torch

from tests.support.memory_access import addresses_of
from tests.support.memory_access import array_of
from tests.support.memory_access import element_of
from tests.support.memory_access import run_over
from tests.support.memory_access import site_of
from tilewright.interpret.faults import OutOfBounds
from tilewright.interpret.memory.arrays import Tiling
from tilewright.interpret.memory.padding import padding
from tilewright.interpret.operations.atomics import compare_and_swap
from tilewright.interpret.operations.atomics import modify
from tilewright.interpret.operations.atomics import read_modify_write
from tilewright.interpret.operations.atomics import reduce_view
from tilewright.interpret.operations.tiles import TileAccess

NUMPY_MODES = {
    "ADD_INT": lambda old, new: old + new,
    "ADD_FLOAT": lambda old, new: old + new,
    "BITWISE_AND": lambda old, new: old & new,
    "BITWISE_OR": lambda old, new: old | new,
    "BITWISE_XOR": lambda old, new: old ^ new,
    "MAX_SIGNED_INT": max,
    "MIN_SIGNED_INT": min,
    "MAX_UNSIGNED_INT": max,
    "MIN_UNSIGNED_INT": min,
    "EXCHANGE": lambda old, new: new,
}
SIGNED = [mode for mode in NUMPY_MODES if "FLOAT" not in mode and "UNSIGNED" not in mode]
UNSIGNED = [mode for mode in NUMPY_MODES if "FLOAT" not in mode and "_SIGNED" not in mode]
CASES = [
    *((mode, dtype) for mode in SIGNED for dtype in ("int32", "int64")),
    *((mode, dtype) for mode in UNSIGNED for dtype in ("uint32", "uint64")),
    *((mode, dtype) for mode in ("ADD_FLOAT", "EXCHANGE") for dtype in ("float32", "float64")),
    ("ADD_FLOAT", "float16"),
]


def random_numbers(generator, dtype, shape):
    if dtype.startswith("float"):
        return generator.standard_normal(shape).astype(dtype)
    limits = np.iinfo(dtype)
    return generator.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def tile_of(array):
    """The numpy array as a tile: unsigned integers are held in wider ones, uint64 as bit patterns."""
    if array.dtype == np.uint64:
        return torch.from_numpy(array.view(np.int64))
    if array.dtype == np.uint32:
        return torch.from_numpy(array.astype(np.int64))
    return torch.from_numpy(array)


@pytest.mark.parametrize(("mode", "dtype"), CASES)
@pytest.mark.parametrize("masked", [False, True])
def test_lanes_of_all_blocks_update_in_order(mode, dtype, masked):
    generator = np.random.default_rng(0)
    start = random_numbers(generator, dtype, 5)
    places = generator.integers(0, 5, (4, 6))
    updates = random_numbers(generator, dtype, (4, 6))
    mask = generator.random((4, 6)) < 0.6 if masked else np.ones((4, 6), bool)
    expected, olds = start.copy(), np.zeros((4, 6), dtype)
    with np.errstate(over="ignore"):
        for lane in np.ndindex(4, 6):
            if mask[lane]:
                olds[lane] = expected[places[lane]]
                expected[places[lane]] = NUMPY_MODES[mode](expected[places[lane]], updates[lane])

    memory = torch.from_numpy(start.copy())
    run = run_over(memory, blocks=4)
    old = read_modify_write(
        site_of(memory),
        mode,
        (6,),
        run,
        memory.data_ptr() + torch.from_numpy(places) * memory.element_size(),
        tile_of(updates),
        torch.from_numpy(mask) if masked else None,
    )

    np.testing.assert_array_equal(memory.numpy(), expected)
    assert torch.equal(old, tile_of(olds))

    memory.copy_(torch.from_numpy(start))  # what runs where nothing uses the old values
    pointers = memory.data_ptr() + torch.from_numpy(places) * memory.element_size()
    modify(site_of(memory), mode, run, pointers, tile_of(updates), torch.from_numpy(mask) if masked else None)
    np.testing.assert_array_equal(memory.numpy(), expected)


def test_bfloat16_rounds_every_addition():
    memory = torch.tensor([256.0], dtype=torch.bfloat16)  # whose neighbour is 258
    run = run_over(memory, blocks=3)
    old = read_modify_write(
        site_of(memory), "ADD_FLOAT", (), run, memory.data_ptr(), torch.ones(1, dtype=torch.bfloat16), None
    )
    assert memory.tolist() == [256.0]
    assert old.tolist() == [256.0, 256.0, 256.0]
    modify(
        site_of(memory), "ADD_FLOAT", run, torch.tensor([memory.data_ptr()]), torch.ones(1, dtype=torch.bfloat16), None
    )
    assert memory.tolist() == [256.0]


def test_every_block_does_a_uniform_update():
    memory = torch.tensor([10], dtype=torch.int32)
    run = run_over(memory, blocks=4)
    old = read_modify_write(site_of(memory), "ADD_INT", (), run, memory.data_ptr(), 5, None)
    assert memory.tolist() == [30]
    assert old.tolist() == [10, 15, 20, 25]


def test_one_block_gets_a_scalar_as_python_integer():
    memory = torch.tensor([2**32 - 1], dtype=torch.uint32)
    run = run_over(memory)
    assert read_modify_write(site_of(memory), "ADD_INT", (), run, memory.data_ptr(), 2, None) == 2**32 - 1
    assert memory.tolist() == [1]


def test_a_batch_that_asked_for_old_values_is_ordered_until_the_next_one():
    memory = torch.zeros(1, dtype=torch.int32)
    run = run_over(memory, blocks=2)
    run.memory.begin()
    modify(site_of(memory), "ADD_INT", run, torch.tensor([memory.data_ptr()]), 1, None)
    assert memory.tolist() == [2]
    assert not run.memory.ordered
    read_modify_write(site_of(memory), "ADD_INT", (), run, memory.data_ptr(), 1, None)
    assert run.memory.ordered
    run.memory.undo()
    assert memory.tolist() == [0]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32, torch.float64])
def test_compare_and_swap_takes_turns_at_one_address(dtype):
    memory = torch.tensor([0, 7], dtype=dtype)
    run = run_over(memory, blocks=1)
    old = compare_and_swap(
        site_of(memory),
        (4,),
        run,
        addresses_of(memory, 0, 1, 0, 0)[None],
        torch.tensor([[0, 0, 0, 1]], dtype=dtype),
        torch.tensor([[1, 9, 2, 3]], dtype=dtype),
        None,
    )
    assert old.tolist() == [[0, 7, 1, 1]]
    assert memory.tolist() == [3, 7]


def test_compare_and_swap_returns_the_expected_value_where_it_is_masked():
    memory = torch.tensor([5, 5], dtype=torch.int32)
    run = run_over(memory)
    mask = torch.tensor([[True, False]])
    old = compare_and_swap(site_of(memory), (2,), run, addresses_of(memory, 0, 1)[None], 3, 9, mask)
    assert old.tolist() == [[5, 3]]
    assert memory.tolist() == [5, 5]


def test_compare_and_swap_compares_bits():
    memory = torch.tensor([float("nan"), 0.0])
    run = run_over(memory)
    expected = torch.tensor([[float("nan"), -0.0]])
    compare_and_swap(
        site_of(memory), (2,), run, addresses_of(memory, 0, 1)[None], expected, torch.tensor([[1.0, 2.0]]), None
    )
    assert memory.tolist() == [1.0, 0.0]


def test_a_view_drops_updates_outside_of_the_array():
    memory = torch.zeros(2, 5, dtype=torch.int32)
    array = memory[:, :3]
    geometry = Tiling((2, 2), (2, 2), (0, 1), None, True, "UNDETERMINED")
    static = TileAccess(site_of(array), geometry, (), padding("UNDETERMINED", element_of(torch.int32)))
    run = run_over(array, blocks=2)
    update = torch.tensor([[[1, 2], [3, 4]]], dtype=torch.int32)
    reduce_view(static, "ADD_INT", run, array_of(array), (0, torch.tensor([0, 1])), update)
    assert memory.tolist() == [[1, 2, 1, 0, 0], [3, 4, 3, 0, 0]]


def test_nothing_happens_where_all_lanes_are_masked():
    memory = torch.tensor([4], dtype=torch.int32)
    run = run_over(memory)
    mask = torch.tensor([[False]])
    for mode in ("ADD_INT", "EXCHANGE"):
        old = read_modify_write(site_of(memory), mode, (1,), run, torch.tensor([[0]]), 1, mask)
        assert old.tolist() == [[0]]
    assert compare_and_swap(site_of(memory), (1,), run, torch.tensor([[0]]), 8, 1, mask).tolist() == [[8]]
    assert memory.tolist() == [4]


def test_an_update_outside_of_all_arrays_is_refused():
    memory = torch.zeros(1, dtype=torch.int32)
    run = run_over(memory)
    outside = memory.data_ptr() + memory.untyped_storage().nbytes()
    with pytest.raises(OutOfBounds, match="0 bytes behind the end of t0"):
        read_modify_write(site_of(memory), "ADD_INT", (), run, outside, 1, None)
