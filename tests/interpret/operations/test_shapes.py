"""Movement of elements, bits, reductions and products of the interpreter against torch and numpy."""

import itertools

import numpy as np
import pytest
import torch

from tilewright.interpret.faults import OutOfBounds
from tilewright.interpret.numbers import dtypes
from tilewright.interpret.operations import bits
from tilewright.interpret.operations import shapes

WHOLE = (8, 4)


def tile(blocks):
    return torch.arange(blocks * 32).reshape(blocks, *WHOLE)


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("part", [(2, 2), (8, 1), (1, 4), (8, 4)])
def test_parts_are_taken_at_an_index_that_is_the_same_for_all_blocks(blocks, part):
    x = tile(blocks)
    extract = shapes.extraction(WHOLE, part)
    for i, j in itertools.product(range(8 // part[0]), range(4 // part[1])):
        expected = x[:, i * part[0] : (i + 1) * part[0], j * part[1] : (j + 1) * part[1]]
        assert torch.equal(extract(x, (i, j)), expected)
        assert torch.equal(extract(x, (torch.tensor([i]), j)), expected)


@pytest.mark.parametrize("blocks", [1, 3])
def test_parts_are_taken_at_the_index_of_each_block(blocks):
    x, rows, columns = tile(blocks), [3, 0, 2], [1, 1, 0]
    result = shapes.extraction(WHOLE, (2, 2))(x, (torch.tensor(rows, dtype=torch.int32), torch.tensor(columns)))
    every = x.expand(3, *WHOLE)
    for block, (i, j) in enumerate(zip(rows, columns, strict=True)):
        assert torch.equal(result[block], every[block, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2])


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("rows", [[3, 0, 2], 1])
def test_parts_are_replaced_in_a_copy(blocks, rows):
    x, value = tile(blocks), -torch.arange(4).reshape(1, 2, 2)
    before = x.clone()
    index = torch.tensor(rows) if isinstance(rows, list) else rows
    result = shapes.insertion(WHOLE, (2, 2), dtypes.INT64)(x, value, (index, 1))
    assert torch.equal(x, before)
    places = rows if isinstance(rows, list) else [rows] * blocks
    expected = before.expand(len(places), *WHOLE).clone()
    for block, i in enumerate(places):
        expected[block, 2 * i : 2 * i + 2, 2:4] = value[0]
    assert torch.equal(result, expected)


@pytest.mark.parametrize("index", [4, -1, torch.tensor([0, 4]), torch.tensor([-1, 0])])
def test_parts_outside_of_the_tile_are_refused(index):
    with pytest.raises(OutOfBounds, match=r"index (4|-1) along axis 0 .*\(8, 4\)\n.*from 0 to 3"):
        shapes.extraction(WHOLE, (2, 4))(tile(1), (index, 0))
    with pytest.raises(OutOfBounds, match="along axis 0"):
        shapes.insertion(WHOLE, (2, 4), dtypes.INT64)(tile(1), tile(1)[:, :2], (index, 0))


def test_a_single_integer_becomes_a_scalar_of_all_blocks_or_of_each():
    assert shapes.reshaping(dtypes.UINT64, ())(torch.tensor([[-1]])) == 2**64 - 1
    assert shapes.reshaping(dtypes.INT32, ())(torch.tensor([[[-5]]], dtype=torch.int32)) == -5
    assert shapes.reshaping(dtypes.BOOL, ())(torch.tensor([[True]])) is True
    assert shapes.reshaping(dtypes.INT32, ())(7) == 7
    assert shapes.reshaping(dtypes.INT32, ())(torch.tensor([[1], [2]])).tolist() == [1, 2]
    assert shapes.reshaping(dtypes.FLOAT32, ())(torch.tensor([[1.5]])).tolist() == [1.5]
    assert shapes.reshaping(dtypes.INT32, (1, 1))(7).tolist() == [[[7]]]


def test_tiles_of_one_and_of_all_blocks_meet():
    one, all_blocks = shapes.same_blocks(tile(1), tile(3))
    assert one.shape == all_blocks.shape
    assert torch.equal(one[2], tile(1)[0])


PATTERNS = [0, 1, 0x3C00, 0x7F80, 0x8000, 0xFFFF, 0x7FFF, 0xC2A1]
WIDTHS = {
    8: [dtypes.INT8, dtypes.UINT8, dtypes.FLOAT8_E4M3FN, dtypes.FLOAT8_E5M2, dtypes.FLOAT8_E8M0FNU],
    16: [dtypes.INT16, dtypes.UINT16, dtypes.FLOAT16, dtypes.BFLOAT16],
    32: [dtypes.INT32, dtypes.UINT32, dtypes.FLOAT32],
    64: [dtypes.INT64, dtypes.UINT64, dtypes.FLOAT64],
}


def memory(width):
    """Bytes of eight elements."""
    return np.array([each * 0x0001_0001_0001_0001 for each in PATTERNS], dtype=np.uint64).astype(f"u{width // 8}")


def from_memory(element, width):
    raw = torch.from_numpy(memory(width).view(np.uint8).copy()).view(element.storage)
    return dtypes.from_storage(raw[None], element)


@pytest.mark.parametrize(
    ("source", "target"),
    [pair for group in WIDTHS.values() for pair in itertools.permutations(group, 2)],
    ids=lambda each: each.name,
)
def test_bitcasts_keep_every_bit(source, target):
    width = source.bits
    result = bits.bitcast(source, target)(from_memory(source, width))
    assert result.dtype == target.compute
    held = dtypes.to_storage(result, target).contiguous().view(torch.uint8)
    assert held.flatten().tolist() == memory(width).view(np.uint8).tolist()


def test_bitcasts_of_scalars_stay_scalars():
    assert bits.bitcast(dtypes.INT32, dtypes.UINT32)(-1) == 2**32 - 1
    assert bits.bitcast(dtypes.UINT64, dtypes.INT64)(2**64 - 1) == -1
    assert bits.bitcast(dtypes.UINT32, dtypes.FLOAT32)(0x3F800000).tolist() == [1.0]


@pytest.mark.parametrize(
    "element", [each for group in WIDTHS.values() for each in group if each.bits > 8], ids=lambda each: each.name
)
def test_packing_gives_the_bytes_in_memory(element):
    x = from_memory(element, element.bits)
    packed = bits.packing(element)(x)
    assert packed.flatten().tolist() == memory(element.bits).view(np.uint8).tolist()
    unpacked = bits.unpacking(element)(packed)
    assert torch.equal(dtypes.to_storage(unpacked, element).view(torch.uint8), packed)


def test_two_small_floats_share_a_byte_low_half_first():
    x = torch.tensor([[1, 2, 15, 0]], dtype=torch.uint8)
    packed = bits.packing(dtypes.FLOAT4_E2M1FN)(x)
    assert packed.tolist() == [[0x21, 0x0F]]
    assert torch.equal(bits.unpacking(dtypes.FLOAT4_E2M1FN)(packed), x)


def test_bits_below_those_of_tfloat32_are_dropped():
    x = torch.tensor([[0x3F80_1FFF]], dtype=torch.int32)
    assert bits.bitcast(dtypes.INT32, dtypes.TFLOAT32)(x).tolist() == [[1.0]]
