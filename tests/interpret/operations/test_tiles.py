"""Loads and stores of the tiles of views against going through them element by element."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from tests.support.memory_access import array_of
from tests.support.memory_access import element_of
from tests.support.memory_access import run_over
from tests.support.memory_access import site_of
from tilewright.interpret.faults import OutOfBounds
from tilewright.interpret.memory.allocations import Undetermined
from tilewright.interpret.memory.arrays import ArrayValue
from tilewright.interpret.memory.arrays import Tiling
from tilewright.interpret.memory.padding import padding
from tilewright.interpret.operations.tiles import TileAccess
from tilewright.interpret.operations.tiles import load_tile
from tilewright.interpret.operations.tiles import store_tile

FILL = {"ZERO": 0.0, "NEG_ZERO": -0.0, "NAN": math.nan, "POS_INF": math.inf, "NEG_INF": -math.inf, "UNDETERMINED": 0.0}


def access_to(tensor, tile, *, steps=None, order=None, sparse=None, mode="UNDETERMINED", inbounds=()):
    order = tuple(range(len(tile))) if order is None else tuple(order)
    steps = (1,) * len(tile) if sparse is not None else steps or tile
    geometry = Tiling(tuple(tile), tuple(steps), order, sparse, True, mode)
    return TileAccess(site_of(tensor), geometry, inbounds, padding(mode, element_of(tensor.dtype)))


def numpy_tile(array, geometry, index, fill):
    """The tile element by element, as the documentation of cuda.tile defines it, and which elements are inside."""
    tile = np.full(geometry.tile, fill, dtype=array.dtype)
    inside = np.zeros(geometry.tile, dtype=bool)
    for lane in np.ndindex(*geometry.tile):
        element = [0] * array.ndim
        for dimension, axis in enumerate(geometry.order):
            element[axis] = int(index[dimension]) * geometry.steps[dimension] + lane[dimension]
        if all(0 <= place < size for place, size in zip(element, array.shape, strict=True)):
            tile[lane] = array[tuple(element)]
            inside[lane] = True
    return tile, inside


@st.composite
def accesses(draw):
    """An array with any strides, the geometry of a view and the index of each of some blocks, uniform or not."""
    rank = draw(st.integers(0, 3))
    shape = draw(st.lists(st.integers(1, 7), min_size=rank, max_size=rank))
    gaps = draw(st.lists(st.integers(1, 2), min_size=rank, max_size=rank))
    axes = draw(st.permutations(range(rank)))
    storage = torch.arange(math.prod(shape) * math.prod(gaps) + 3, dtype=torch.float32)
    strides, step = [0] * rank, 1
    for axis in axes:
        strides[axis] = step * gaps[axis]
        step *= gaps[axis] * shape[axis]
    array = storage.as_strided(shape, strides, draw(st.integers(0, 3)))
    tile = draw(st.lists(st.sampled_from([1, 2, 4]), min_size=rank, max_size=rank))
    steps = draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank)) if draw(st.booleans()) else tile
    blocks = draw(st.integers(1, 5))
    index = []
    for _ in range(rank):
        values = draw(st.lists(st.integers(-2, 4), min_size=blocks, max_size=blocks))
        index.append(values[0] if draw(st.booleans()) else torch.tensor(values, dtype=torch.int32))
    order = draw(st.permutations(range(rank)))
    mode = draw(st.sampled_from(sorted(FILL)))
    return array, access_to(array, tile, steps=steps, order=order, mode=mode), tuple(index), blocks


def index_of(index, block):
    return [int(each[block]) if isinstance(each, torch.Tensor) else each for each in index]


@given(accesses())
@settings(max_examples=150, deadline=None)
def test_a_load_takes_the_elements_that_the_index_selects_and_pads_the_others(case):
    array, static, index, blocks = case
    tile = load_tile(static, run_over(array, blocks=blocks), array_of(array), index)
    for block in range(blocks):
        expected, _ = numpy_tile(array.numpy(), static.geometry, index_of(index, block), FILL[static.geometry.padding])
        found = tile[block % len(tile)].numpy()
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(expected[expected == 0]))


@given(accesses())
@settings(max_examples=150, deadline=None)
def test_stored_tiles_are_where_a_load_finds_them_and_nothing_else_changes(case):
    array, static, index, _ = case
    index = tuple(each[:1] if isinstance(each, torch.Tensor) else each for each in index)
    before = array.untyped_storage().tolist()
    values = -torch.arange(1, 1 + math.prod(static.tile), dtype=torch.float32).view(1, *static.tile)
    run = run_over(array)
    run.memory.begin()
    expected = array.clone()
    mirrored = expected.numpy()
    for lane in np.ndindex(*static.tile):
        element = [0] * array.dim()
        for dimension, axis in enumerate(static.geometry.order):
            element[axis] = index_of(index, 0)[dimension] * static.geometry.steps[dimension] + lane[dimension]
        if all(0 <= place < size for place, size in zip(element, array.shape, strict=True)):
            mirrored[tuple(element)] = values[0][lane]
    store_tile(static, run, array_of(array), index, values)
    assert torch.equal(array, expected)
    run.memory.undo()
    assert array.untyped_storage().tolist() == before


def test_blocks_store_their_own_tiles():
    array = torch.zeros(5, 6)
    static = access_to(array, (2, 4))
    rows, columns = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([0, 1, 0, 1, 0, 1])
    tiles = torch.arange(6.0).view(6, 1, 1).expand(6, 2, 4)
    run = run_over(array, blocks=6)
    run.memory.begin()
    store_tile(static, run, array_of(array), (rows, columns), tiles)
    by_hand = torch.tensor(
        [[0, 0, 0, 0, 1, 1]] * 2 + [[2, 2, 2, 2, 3, 3]] * 2 + [[4, 4, 4, 4, 5, 5]], dtype=torch.float
    )
    assert torch.equal(array, by_hand)
    run.memory.undo()
    assert torch.equal(array, torch.zeros(5, 6))


def test_the_last_block_stays_where_all_store_to_one_place():
    array = torch.zeros(4)
    tiles = torch.arange(12.0).view(3, 4)
    store_tile(access_to(array, (4,)), run_over(array, blocks=3), array_of(array), (0,), tiles)
    assert array.tolist() == [8.0, 9.0, 10.0, 11.0]


def test_blocks_may_have_slices_of_their_own():
    whole = torch.arange(10.0)
    starts, sizes = torch.tensor([0, 3, 9]), torch.tensor([3, 4, 1], dtype=torch.int32)
    array = ArrayValue(whole.data_ptr() + starts * 4, (sizes,), (1,))
    tile = load_tile(access_to(whole, (4,), mode="NEG_INF"), run_over(whole, blocks=3), array, (0,))
    inf = math.inf
    assert tile.tolist() == [[0, 1, 2, -inf], [3, 4, 5, 6], [9, -inf, -inf, -inf]]


def test_stores_to_an_expanded_tensor_keep_the_last_element():
    array = torch.zeros(1).expand(4)
    store_tile(access_to(array, (4,)), run_over(array), array_of(array), (0,), torch.arange(4.0)[None])
    assert array.tolist() == [3.0] * 4


def test_a_sparse_dimension_selects_rows_and_pads_those_outside():
    array = torch.arange(20.0).view(4, 5)
    static = access_to(array, (4, 2), sparse=0, mode="ZERO")
    rows = torch.tensor([[3, 0, -1, 4], [1, 1, 2, 0]])
    tile = load_tile(static, run_over(array, blocks=2), array_of(array), (rows, 4))
    assert tile.tolist() == [[[19, 0], [4, 0], [0, 0], [0, 0]], [[9, 0], [9, 0], [14, 0], [4, 0]]]


def test_a_sparse_dimension_scatters_rows():
    array = torch.zeros(4, 3)
    static = access_to(array, (2, 2), sparse=0)
    tile = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    store_tile(static, run_over(array), array_of(array), (torch.tensor([[2, 7]]), 2), tile)
    assert array.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize("index", [1, torch.tensor([0, 1])])
def test_a_tile_promised_to_be_inside_must_be(index):
    array = torch.zeros(6)
    static, run = access_to(array, (4,), inbounds=(True,)), run_over(array, blocks=2)
    with pytest.raises(OutOfBounds, match=r"a tile of shape \(4,\) reaches beyond its array"):
        load_tile(static, run, array_of(array), (index,))
    with pytest.raises(OutOfBounds, match=r"a tile of shape \(4,\) reaches beyond its array"):
        store_tile(static, run, array_of(array), (index,), torch.zeros(1, 4))
    assert array.tolist() == [0.0] * 6


def test_a_tile_promised_to_be_inside_is_loaded():
    array = torch.arange(8.0)
    tile = load_tile(access_to(array, (4,), inbounds=(True,)), run_over(array), array_of(array), (1,))
    assert tile.tolist() == [[4.0, 5.0, 6.0, 7.0]]


@pytest.mark.parametrize(
    ("dtype", "highest", "lowest"),
    [
        (torch.float32, torch.finfo().max, torch.finfo().min),
        (torch.int16, 32767, -32768),
        (torch.uint16, 65535, 0),
        (torch.uint64, -1, 0),  # tiles hold the bit pattern
        (torch.bool, True, False),
        (torch.float8_e5m2, 0x7B, 0xFB),  # 57344, the largest number
        (torch.float8_e4m3fn, 0x7E, 0xFE),  # 448, the largest number
    ],
)
def test_undetermined_elements_are_what_the_run_says(dtype, highest, lowest):
    array = torch.zeros(1).to(dtype)
    static = access_to(array, (2,))
    run = run_over(array)
    for undetermined, expected in ((Undetermined.HIGHEST, highest), (Undetermined.LOWEST, lowest)):
        run.memory.undetermined = undetermined
        assert load_tile(static, run, array_of(array), (0,))[0, 1].item() == expected


@pytest.mark.parametrize(
    ("dtype", "mode", "pattern"),
    [
        (torch.float8_e5m2, "NEG_INF", 0xFC),
        (torch.float8_e5m2, "NAN", 0x7F),
        (torch.float8_e4m3fn, "NEG_ZERO", 0x80),
        (torch.float8_e4m3fn, "NAN", 0x7F),
    ],
)
def test_small_floats_are_padded_by_bit_patterns(dtype, mode, pattern):
    array = torch.zeros(1).to(dtype)
    assert load_tile(access_to(array, (2,), mode=mode), run_over(array), array_of(array), (0,)).tolist() == [
        [0, pattern]
    ]


@pytest.mark.parametrize("index", [2**32 + 1, torch.tensor([2**32 + 1, 1])])
def test_indices_are_cut_to_32_bits_as_the_compiler_does(index):
    array = torch.arange(8.0)
    tile = load_tile(access_to(array, (4,)), run_over(array, blocks=2), array_of(array), (index,))
    assert tile[0].tolist() == [4.0, 5.0, 6.0, 7.0]
