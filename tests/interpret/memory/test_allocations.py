"""Memory by absolute address: reads, writes, what is refused, and the log that takes writes back."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.support.memory_access import addresses_of
from tests.support.memory_access import run_over
from tilewright.interpret.faults import MisalignedAccess
from tilewright.interpret.faults import OutOfBounds
from tilewright.interpret.memory.allocations import LogFull
from tilewright.interpret.memory.allocations import Memory
from tilewright.interpret.run import Diverge


def memory_of(*tensors):
    return run_over(*tensors).memory


def test_elements_of_several_allocations_are_read_and_written_at_once():
    first, second = torch.arange(4.0), torch.arange(10.0, 14.0)
    memory = memory_of(first, second)
    addresses = torch.cat([addresses_of(first, 1, 3), addresses_of(second, 0)])
    assert memory.read(addresses, torch.float32).tolist() == [1.0, 3.0, 10.0]
    memory.write(addresses, torch.tensor([-1.0, -2.0, -3.0]))
    assert first.tolist() == [0.0, -1.0, 2.0, -2.0]
    assert second.tolist() == [-3.0, 11.0, 12.0, 13.0]


def test_views_of_one_storage_share_it_in_any_dtype():
    floats = torch.tensor([1.0, 2.0])
    memory = memory_of(floats, floats.view(torch.int32)[1:])
    assert len(memory.allocations) == 1
    assert memory.read(addresses_of(floats, 0, 1), torch.int32).tolist() == [0x3F800000, 0x40000000]


def test_storages_over_the_same_memory_are_one_allocation():
    whole = np.arange(10, dtype=np.int32)
    memory = Memory()
    low, high = torch.from_numpy(whole[:6]), torch.from_numpy(whole[4:])
    memory.add(low)
    memory.add(high)
    assert len(memory.allocations) == 1
    assert memory.read(low.data_ptr() + torch.tensor([0, 36]), torch.int32).tolist() == [0, 9]
    memory.write(low.data_ptr() + torch.tensor([20]), torch.tensor([-1], dtype=torch.int32))
    assert whole[5] == -1


def test_the_last_of_several_writes_to_one_place_stays():
    tensor = torch.zeros(2)
    memory_of(tensor).write(addresses_of(tensor, 1, 1, 1), torch.tensor([1.0, 2.0, 3.0]))
    assert tensor.tolist() == [0.0, 3.0]


def test_undo_restores_what_was_before_all_writes():
    tensor = torch.arange(6.0)
    memory = memory_of(tensor)
    memory.begin()
    memory.write(addresses_of(tensor, 1, 1), torch.tensor([7.0, 8.0]))
    memory.overwrite(memory.box(tensor.data_ptr(), (2,), (1,), torch.float32, "write"), None, torch.tensor([5.0, 6.0]))
    view, positions = memory.boxes(addresses_of(tensor, 0, 3), (2,), (1,), torch.float32, "write")
    memory.overwrite(view, positions, torch.full((2, 2), -1.0))
    assert tensor.tolist() == [-1.0, -1.0, 2.0, -1.0, -1.0, 5.0]
    memory.undo()
    assert tensor.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_commit_keeps_the_writes():
    tensor = torch.zeros(1)
    memory = memory_of(tensor)
    memory.begin()
    memory.write(addresses_of(tensor, 0), torch.ones(1))
    memory.commit()
    memory.undo()
    assert tensor.tolist() == [1.0]


def test_writes_that_are_taken_back_within_a_batch_leave_room_in_the_log():
    tensor = torch.zeros(3)
    memory = memory_of(tensor)
    memory.begin(most_bytes=40)  # of 12 for each element: its old value and its place
    memory.write(addresses_of(tensor, 0), torch.ones(1))
    for _ in range(3):
        mark = memory.mark()
        memory.write(addresses_of(tensor, 0, 1), torch.full((2,), 5.0))
        memory.go_back(mark)
    assert tensor.tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("change", ["write", "accumulate"])
def test_a_change_that_the_log_has_no_room_for_is_not_made(change):
    tensor = torch.zeros(4)
    memory = memory_of(tensor)
    memory.begin(most_bytes=40)  # of 12 for each element: its old value and its place
    getattr(memory, change)(addresses_of(tensor, 0, 1, 2), torch.ones(3))
    with pytest.raises(LogFull):
        getattr(memory, change)(addresses_of(tensor, 3), torch.ones(1))
    assert tensor.tolist() == [1.0, 1.0, 1.0, 0.0]
    memory.undo()
    assert tensor.tolist() == [0.0] * 4


@pytest.mark.parametrize(
    ("offset", "where"),
    [(8, "0 bytes behind the end of t0 of shape (2,)"), (-4, "4 bytes before t0 of shape (2,)")],
)
def test_an_access_outside_names_the_nearest_array(offset, where):
    tensor = torch.zeros(2)
    memory = memory_of(tensor)
    address = tensor.data_ptr() + offset
    message = f"a read of 4 bytes {where}"
    with pytest.raises(OutOfBounds) as fault:
        memory.read(torch.tensor([tensor.data_ptr(), address]), torch.float32)
    assert message in str(fault.value)
    with pytest.raises(OutOfBounds) as fault:
        memory.box(address, (1,), (1,), torch.float32, "read")
    assert message in str(fault.value)


def test_an_access_without_arrays_is_outside():
    with pytest.raises(OutOfBounds, match="in a launch without arrays"):
        Memory().read(torch.tensor([64]), torch.float32)


def test_an_element_that_begins_inside_must_end_inside():
    tensor = torch.zeros(6, dtype=torch.uint8)
    with pytest.raises(OutOfBounds, match="a write of 4 bytes 4 bytes into t0"):
        memory_of(tensor).write(tensor.data_ptr() + torch.tensor([4]), torch.zeros(1))


def test_misaligned_accesses_are_refused():
    tensor = torch.zeros(8, dtype=torch.uint8)
    memory = memory_of(tensor)
    with pytest.raises(MisalignedAccess, match=r"a read of 4 bytes 2 bytes into t0 .* is not aligned to 4 bytes"):
        memory.read(tensor.data_ptr() + torch.tensor([2]), torch.float32)
    with pytest.raises(MisalignedAccess, match="is not aligned to 4 bytes"):
        memory.box(tensor.data_ptr() + 2, (1,), (1,), torch.float32, "read")


def test_empty_tensors_have_no_memory():
    memory = memory_of(torch.zeros(0))
    assert memory.allocations == []
    assert memory.read(torch.zeros(0, dtype=torch.int64), torch.float32).shape == (0,)


def test_boxes_of_blocks_in_several_allocations_make_the_blocks_diverge():
    first, second = torch.zeros(4), torch.zeros(4)
    memory = memory_of(first, second)
    addresses = torch.cat([addresses_of(first, 0), addresses_of(second, 0)])
    with pytest.raises(Diverge):
        memory.boxes(addresses, (2,), (1,), torch.float32, "read")


@given(parts=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), min_size=1, max_size=12))
def test_memory_is_what_any_of_several_parts_covers(parts):
    whole = np.zeros(40, dtype=np.uint8)
    memory = memory_of(*(torch.from_numpy(whole[start : start + size]) for start, size in parts))
    covered = {place for start, size in parts for place in range(start, start + size)}
    assert {place for place in range(40) if memory.find(whole.ctypes.data + place)} == covered
