"""Views and lists of arrays: counted and indexed."""

from types import SimpleNamespace

import pytest
import torch

from tilewright.interpret.faults import OutOfBounds
from tilewright.interpret.memory.arrays import ArrayList
from tilewright.interpret.memory.arrays import ArrayValue
from tilewright.interpret.memory.arrays import Tiling
from tilewright.interpret.operations.views import list_item
from tilewright.interpret.operations.views import num_tiles
from tilewright.interpret.run import Diverge
from tilewright.interpret.translate.lowering import LOWERINGS


def test_tiles_are_counted_along_the_dimensions_of_the_tile():
    geometry = Tiling((4, 16), (4, 16), (1, 0), None, True, "ZERO")
    assert num_tiles(geometry, ArrayValue(0, (17, 8), (8, 1))) == (2, 2)


def test_tiles_that_overlap_are_counted_by_their_first_elements():
    assert num_tiles(Tiling((4,), (2,), (0,), None, True, "ZERO"), ArrayValue(0, (7,), (1,))) == 4


def test_tiles_of_each_block_are_counted_as_int32():
    counts = num_tiles(Tiling((4,), (4,), (0,), None, True, "ZERO"), ArrayValue(0, (torch.tensor([0, 4, 9]),), (1,)))
    assert (counts.tolist(), counts.dtype) == ([0, 1, 3], torch.int32)


def test_an_item_of_a_list_is_its_address_shape_and_strides():
    arrays = ArrayList(((64, 3, 1), (128, 5, 2)))
    assert list_item(arrays, 1) == (128, 5, 2)
    assert list_item(arrays, torch.tensor([0, 0])) == (64, 3, 1)
    assert list_item(ArrayList(((64,),)), 0) == 64  # the only result of the operation


def test_blocks_that_take_several_items_of_a_list_diverge():
    with pytest.raises(Diverge):
        list_item(ArrayList(((64, 3, 1), (128, 5, 2))), torch.tensor([0, 1]))


@pytest.mark.parametrize("index", [-1, 2])
def test_an_index_outside_of_a_list_is_refused(index):
    with pytest.raises(OutOfBounds, match=f"index {index} of a list of 2 arrays"):
        list_item(ArrayList(((64, 3, 1), (128, 5, 2))), index)


def test_strides_that_are_constants_of_the_type_are_no_operands_in_cuda_tile_1_5():
    result = SimpleNamespace(get_type=lambda: SimpleNamespace(strides=(None, 1)))
    op = SimpleNamespace(result_var=result, base_ptr="p", shape=("m", "n"), dynamic_strides=("s",))
    step = LOWERINGS["make_tensor_view"].handler(op)
    assert step.operands == ("p", ("m", "n"), ("s",))
    assert step.function(64, (2, 3), (5,)) == ArrayValue(64, (2, 3), (5, 1))
