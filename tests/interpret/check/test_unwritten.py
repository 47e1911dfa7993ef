"""Which bytes of a storage are known to be unwritten."""

import gc

import torch

from tilewright.interpret.check.unwritten import fresh
from tilewright.interpret.check.unwritten import unwritten_bytes
from tilewright.interpret.check.unwritten import written


def bytes_of(tensor):
    unwritten = unwritten_bytes(tensor.untyped_storage().data_ptr())
    return None if unwritten is None else unwritten.tolist()


def test_nothing_is_known_of_tensors_that_nobody_told_of():
    assert bytes_of(torch.empty(2)) is None
    fresh(torch.empty(0))
    written(torch.empty(2))


def test_a_view_marks_its_own_elements_as_written():
    tensor = torch.empty(2, 3, dtype=torch.int16)
    fresh(tensor)
    written(tensor.t()[1:2])
    assert bytes_of(tensor) == [True, True, False, False, True, True] * 2
    written(tensor.view(torch.uint8)[1, 5:])
    assert bytes_of(tensor) == [True, True, False, False, True, True, True, True, False, False, True, False]


def test_an_expanded_tensor_is_written_in_its_one_place():
    tensor = torch.empty(2, dtype=torch.uint8)
    fresh(tensor)
    written(tensor[1:].expand(5))
    assert bytes_of(tensor) == [True, False]


def test_a_storage_is_forgotten_with_its_last_tensor():
    tensor = torch.empty(1000)
    address = tensor.data_ptr()
    fresh(tensor)
    view = tensor[10:]
    del tensor
    gc.collect()
    assert unwritten_bytes(address) is not None
    del view
    gc.collect()
    assert unwritten_bytes(address) is None
