"""Which accesses of blocks are ordered."""

import torch

from tilewright.interpret.check.shadow import NOBODY
from tilewright.interpret.check.shadow import Clocks
from tilewright.interpret.check.shadow import Shadow
from tilewright.interpret.memory.allocations import Allocation


def unordered(clocks, *accesses):
    blocks, epochs = zip(*accesses, strict=True)
    return clocks.unordered(torch.tensor(blocks), torch.tensor(epochs)).tolist()


def test_own_accesses_and_none_are_ordered_and_those_of_others_are_not():
    clocks = Clocks()
    clocks.enter(1)
    assert unordered(clocks, (1, 0), (NOBODY, NOBODY), (0, 0)) == [False, False, True]


def test_what_a_block_did_before_a_release_is_ordered_behind_an_acquire_at_the_same_place():
    clocks = Clocks()
    clocks.enter(0)
    clocks.release([64])
    assert clocks.epoch == 1
    clocks.enter(1)
    clocks.acquire([128])
    assert unordered(clocks, (0, 0)) == [True]
    clocks.acquire([64])
    assert unordered(clocks, (0, 0), (0, 1)) == [False, True]


def test_order_is_passed_on_from_block_to_block():
    clocks = Clocks()
    clocks.enter(0)
    clocks.release([64])
    clocks.enter(1)
    clocks.acquire([64])
    clocks.release([128])
    clocks.enter(2)
    clocks.acquire([128])
    assert unordered(clocks, (0, 0), (1, 0)) == [False, False]


def test_the_first_and_the_last_reader_of_a_unit_are_known():
    memory = torch.zeros(8, dtype=torch.uint8)
    shadow = Shadow(Allocation(64, 72, memory), 2)
    for block in (3, 3, 4, 5):
        shadow.read(shadow.units(torch.tensor([66]), 2), block, 0, 0)
    assert shadow.first_reads.block.tolist() == [NOBODY, 3, NOBODY, NOBODY]
    assert shadow.last_reads.block.tolist() == [NOBODY, 5, NOBODY, NOBODY]


def test_an_element_takes_as_many_units_as_it_has_of_the_smallest_elements():
    shadow = Shadow(Allocation(64, 72, torch.zeros(8, dtype=torch.uint8)), 2)
    assert shadow.units(torch.tensor([64, 68]), 4).tolist() == [[0, 1], [2, 3]]
    assert shadow.units(torch.tensor([66]), 1).tolist() == [[1]]
