"""Atomic operations in kernels, many blocks at once."""

import cuda.tile as ct
import pytest
import torch

from tilewright.interpret.faults import UnsupportedOperation
from tilewright.interpret.launch import Launcher
from tilewright.interpret.operations import atomics
from tilewright.interpret.run import Run

Const = ct.Constant[int]


def launch(kernel, grid, *arguments):
    Launcher().launch(0, grid, kernel, arguments)


@ct.kernel
def histogram(x, counts, size: Const):
    ct.atomic_add(counts, ct.load(x, (ct.bid(0),), (size,)), 1)


@ct.kernel
def ranks(x, counts, out, size: Const):
    place = (ct.bid(0),)
    ct.store(out, place, ct.atomic_add(counts, ct.load(x, place, (size,)), 1))


@pytest.mark.parametrize("dtype", [torch.int32, torch.float32])
def test_a_histogram(dtype):
    x, counts = torch.randint(0, 16, (512,)), torch.zeros(16, dtype=dtype)
    launch(histogram, (8,), x, counts, 64)
    assert counts.tolist() == torch.bincount(x, minlength=16).tolist()


def test_old_values_count_the_equal_elements_before():
    x, counts, out = torch.randint(0, 4, (64,)), torch.zeros(4, dtype=torch.int64), torch.zeros(64, dtype=torch.int64)
    launch(ranks, (8,), x, counts, out, 8)
    assert out.tolist() == [x[:place].eq(x[place]).sum() for place in range(64)]


@ct.kernel
def last_block_sums(x, partial, counter, out, size: Const, blocks: Const):
    ct.store(partial, (ct.bid(0),), ct.sum(ct.load(x, (ct.bid(0),), (size,))))
    if ct.atomic_add(counter, 0, 1) == blocks - 1:
        ct.store(out, (0,), ct.sum(ct.load(partial, (0,), (blocks,))))


def test_the_last_block_finds_what_the_others_stored():
    x, partial = torch.arange(64), torch.zeros(8, dtype=torch.int64)
    counter, out = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int64)
    launch(last_block_sums, (8,), x, partial, counter, out, 8, 8)
    assert (out.tolist(), counter.tolist()) == ([2016], [8])


@ct.kernel
def locked_append(lock, length, out):
    while ct.atomic_cas(lock, 0, 0, 1) != 0:
        pass
    place = ct.load(length, (0,), ())
    ct.scatter(out, place, ct.bid(0))
    ct.store(length, (0,), place + 1)
    ct.atomic_xchg(lock, 0, 0)


def test_a_lock_lets_one_block_in_at_a_time():
    lock, length, out = (torch.zeros(size, dtype=torch.int32) for size in (1, 1, 8))
    launch(locked_append, (8,), lock, length, out)
    assert (lock.tolist(), length.tolist()) == ([0], [8])
    assert sorted(out.tolist()) == list(range(8))


@ct.kernel
def reduce_tiles(x, out, rows: Const, columns: Const):
    view = out.tiled_view((rows, columns))
    view.atomic_store_add((0, ct.bid(1)), ct.load(x, (ct.bid(0), ct.bid(1)), (rows, columns)))


def test_tiles_of_a_view_are_added_up_inside_of_the_array():
    x, out = torch.rand(6, 10, dtype=torch.float64), torch.zeros(2, 10, dtype=torch.float64)
    launch(reduce_tiles, (3, 3), x, out, 2, 4)
    torch.testing.assert_close(out, x.view(3, 2, 10).sum(0))


def test_a_mode_that_is_not_known_is_named(monkeypatch):
    monkeypatch.delitem(atomics._ASSOCIATIVE, "ADD_INT")
    with pytest.raises(UnsupportedOperation, match="does not know the atomic operation ADD_INT\ninstall a release"):
        launch(histogram, (8,), torch.zeros(512, dtype=torch.int64), torch.zeros(16, dtype=torch.int32), 64)


@ct.kernel
def tickets_before_a_branch(tickets, counter):
    ticket = ct.atomic_add(counter, 0, 1)
    if ct.bid(0) % 2 == 0:
        ticket += 100
    ct.scatter(tickets, ct.bid(0), ticket)


@ct.kernel
def tickets_in_a_loop(tickets, counter):
    ticket = 0
    for _ in range(3):
        ticket = ct.atomic_add(counter, 0, 1)
        if ct.bid(0) % 2 == 0:
            ticket += 100
    ct.scatter(tickets, ct.bid(0), ticket)


@pytest.mark.parametrize(
    ("kernel", "last"), [(tickets_before_a_branch, [0, 1, 2, 3]), (tickets_in_a_loop, [2, 5, 8, 11])]
)
def test_atomic_operations_before_blocks_disagree_take_effect_in_the_order_of_blocks(kernel, last):
    tickets, counter = torch.zeros(4, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    launch(kernel, (4,), tickets, counter)
    assert tickets.tolist() == [last[0] + 100, last[1], last[2] + 100, last[3]]


@ct.kernel
def follow(Flags, Out):
    b = ct.bid(0)
    before = 1
    if b > 0:
        before = 0
        while before == 0:
            before = ct.load(
                Flags, (b - 1,), (), memory_order=ct.MemoryOrder.ACQUIRE, memory_scope=ct.MemoryScope.DEVICE
            )
    ct.store(Out, (b,), before)
    ct.store(Flags, (b,), before + 1, memory_order=ct.MemoryOrder.RELEASE, memory_scope=ct.MemoryScope.DEVICE)


def test_blocks_that_acquire_what_others_release_do_not_wait_in_vain(monkeypatch):
    steps = []
    count_step = Run.count_step

    def counted(run):
        steps.append(run.size)
        assert len(steps) <= 2 * 8
        count_step(run)

    monkeypatch.setattr(Run, "count_step", counted)
    flags, out = torch.zeros(2, 8, dtype=torch.int32)
    launch(follow, (8,), flags, out)
    assert out.tolist() == list(range(1, 9))
