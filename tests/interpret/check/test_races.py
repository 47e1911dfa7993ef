"""Blocks that get in each other's way: a kernel that has the fault, and one like it that has not."""

import cuda.tile as ct
import pytest
import torch

from tests.support.checking import double
from tests.support.checking import findings
from tests.support.checking import launch
from tests.support.checking import line_of
from tests.support.checking import only_finding
from tilewright.interpret.check import Kind

Const = ct.Constant[int]


# Races


@ct.kernel
def sum_without_atomics(x, out, size: Const):
    total = ct.sum(ct.load(x, (ct.bid(0),), (size,)))
    ct.store(out, (0,), ct.load(out, (0,), (1,)) + total)


@ct.kernel
def sum_with_atomics(x, out, size: Const):
    ct.atomic_add(out, 0, ct.sum(ct.load(x, (ct.bid(0),), (size,))))


def test_two_blocks_write_one_element():
    x, out = torch.ones(8, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    found = {finding.kind: finding for finding in findings(sum_without_atomics, (2,), x, out, 4)}
    assert set(found) == {Kind.WRITES, Kind.READ, Kind.ORDER}
    assert (found[Kind.WRITES].block, found[Kind.WRITES].other_block) == ((1, 0, 0), (0, 0, 0))
    assert (found[Kind.READ].array, found[Kind.READ].index) == ("out", (0,))
    assert out.tolist() == [8]
    launch(sum_with_atomics, (2,), x, out, 4)
    assert out.tolist() == [16]


def test_atomic_additions_of_floats_may_round_in_any_order():
    x, out = torch.rand(4096), torch.zeros(1)
    launch(sum_with_atomics, (256,), x, out, 16)
    torch.testing.assert_close(out[0], x.sum())


@ct.kernel
def shift(x, out, size: Const):
    place = ct.bid(0) * size + ct.arange(size, dtype=ct.int32)
    ct.scatter(out, place, ct.gather(x, place + 1))


def test_a_block_reads_what_another_one_writes():
    x, out = torch.arange(8.0), torch.zeros(8)
    kinds = {finding.kind for finding in findings(shift, (2,), x, x, 4)}
    assert Kind.READ in kinds
    launch(shift, (2,), torch.arange(8.0), out, 4)
    assert out.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.0]


@ct.kernel
def reduce_in_last_block(x, partial, counter, out, size: Const, blocks: Const):
    ct.store(partial, (ct.bid(0),), ct.sum(ct.load(x, (ct.bid(0),), (size,))))
    if ct.atomic_add(counter, 0, 1) == blocks - 1:
        ct.store(out, (0,), ct.sum(ct.load(partial, (0,), (blocks,))))


@ct.kernel
def reduce_in_last_block_relaxed(x, partial, counter, out, size: Const, blocks: Const):
    ct.store(partial, (ct.bid(0),), ct.sum(ct.load(x, (ct.bid(0),), (size,))))
    if ct.atomic_add(counter, 0, 1, memory_order=ct.MemoryOrder.RELAXED) == blocks - 1:
        ct.store(out, (0,), ct.sum(ct.load(partial, (0,), (blocks,))))


@ct.kernel
def reduce_in_last_block_for_itself(x, partial, counter, out, size: Const, blocks: Const):
    ct.store(partial, (ct.bid(0),), ct.sum(ct.load(x, (ct.bid(0),), (size,))))
    if ct.atomic_add(counter, 0, 1, memory_scope=ct.MemoryScope.BLOCK) == blocks - 1:
        ct.store(out, (0,), ct.sum(ct.load(partial, (0,), (blocks,))))


@pytest.mark.parametrize("unordered", [reduce_in_last_block_relaxed, reduce_in_last_block_for_itself])
def test_release_and_acquire_order_blocks(unordered):
    def arguments():
        return torch.arange(16), torch.zeros(4).long(), torch.zeros(1, dtype=torch.int32), torch.zeros(1).long(), 4, 4

    out = (passed := arguments())[3]
    launch(reduce_in_last_block, (4,), *passed)
    assert out.tolist() == [120]
    (finding,) = findings(unordered, (4,), *arguments())
    assert (finding.kind, finding.array, finding.block) == (Kind.READ, "partial", (3, 0, 0))


@ct.kernel
def read_before_the_last_writes(x, out, flag):
    b = ct.bid(0)
    if b < 2:
        ct.store(out, (b,), ct.load(x, (0,), (1,)))
    if b != 1:
        ct.atomic_add(flag, 0, 1)
    if b == 2:
        ct.store(x, (0,), 5.0)


def test_a_later_reader_races_where_the_first_one_is_ordered():
    flag = torch.zeros(1, dtype=torch.int32)
    found = findings(read_before_the_last_writes, (3,), torch.ones(1), torch.zeros(2), flag)
    (finding,) = (each for each in found if each.kind is Kind.READ)
    assert (finding.array, finding.block, finding.other_block) == ("x", (2, 0, 0), (1, 0, 0))


@ct.kernel
def clear_and_add(out):
    if ct.bid(0) == 0:
        ct.store(out, (0,), 0)
    ct.atomic_add(out, 0, 1, memory_order=ct.MemoryOrder.RELAXED)


def test_a_plain_write_races_with_atomic_operations_of_other_blocks():
    kinds = {finding.kind for finding in findings(clear_and_add, (3,), torch.ones(1, dtype=torch.int32))}
    assert kinds == {Kind.READ, Kind.ORDER}


@ct.kernel
def scatter_values(places, values, out, size: Const):
    ct.scatter(out, ct.load(places, (0,), (size,)), ct.load(values, (0,), (size,)))


def test_lanes_of_one_store_write_several_values_to_one_element():
    places, out = torch.tensor([0, 3, 3, 1], dtype=torch.int32), torch.zeros(4)
    finding = only_finding(scatter_values, (1,), places, torch.tensor([1.0, 2.0, 3.0, 4.0]), out, 4)
    assert (finding.kind, finding.array, finding.index) == (Kind.LANES, "out", (3,))
    launch(scatter_values, (1,), places, torch.tensor([1.0, 2.0, 2.0, 4.0]), out, 4)
    assert out.tolist() == [1.0, 4.0, 0.0, 2.0]


# The order of blocks


@ct.kernel
def append(out, counter):
    ct.scatter(out, ct.atomic_add(counter, 0, 1), ct.bid(0))


@ct.kernel
def count(out, counter):
    ct.atomic_add(counter, 0, 1)
    ct.scatter(out, ct.bid(0), ct.bid(0))


def test_a_result_that_depends_on_the_order_of_blocks():
    out, counter = torch.zeros(4, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    found = findings(append, (4,), out, counter)
    assert {finding.kind for finding in found} == {Kind.ORDER}
    assert (found[0].array, found[0].line) == ("out", line_of(append, "ct.scatter"))
    assert (out.tolist(), counter.tolist()) == ([0, 1, 2, 3], [4])
    launch(count, (4,), out, counter)
    assert counter.tolist() == [8]


@ct.kernel
def append_mirrored(out, counter, blocks: Const):
    ct.scatter(out, ct.atomic_add(counter, 0, 1), min(ct.bid(0), blocks - 1 - ct.bid(0)))


@pytest.mark.parametrize(
    ("kernel", "blocks", "how"),
    [
        (append, 2, "in reverse order of blocks"),  # the shuffled order of two blocks is the usual one
        (append_mirrored, 4, "in a shuffled order of blocks"),  # the same backwards
    ],
)
def test_both_other_orders_count(kernel, blocks, how):
    out, counter = torch.zeros(blocks, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    finding = only_finding(kernel, (blocks,), out, counter, *([blocks] if kernel is append_mirrored else []))
    assert finding.kind is Kind.ORDER
    assert finding.message.endswith(f"is another one {how}")


@ct.kernel
def wait_for_the_block_before(flags, out):
    here = ct.bid(0)
    if here > 0:
        while ct.atomic_cas(flags, here - 1, 1, 1) != 1:
            pass
    ct.scatter(out, here, here)
    ct.atomic_xchg(flags, here, 1)


def test_blocks_that_wait_for_each_other_are_not_judged_in_orders_that_no_gpu_has():
    flags, out = torch.zeros(4, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    launch(wait_for_the_block_before, (4,), flags, out)
    assert out.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_it_does_not_matter_which_nan_a_result_is(dtype):
    x, out = torch.full((40,), float("nan"), dtype=dtype), torch.zeros(40, dtype=dtype)
    x.view(torch.int16)[::3] |= 0x1FF
    launch(double, (10,), x, out, 4)
    assert out.isnan().all()
