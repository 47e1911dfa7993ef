"""Loops that the blocks of a batch leave at different times, or in which they go different ways."""

import cuda.tile as ct
import pytest
import torch

from tilewright.interpret.faults import OutOfBounds
from tilewright.interpret.faults import StepLimitExceeded
from tilewright.interpret.grid import FailedBlock
from tilewright.interpret.grid import Work
from tilewright.interpret.grid import run_grid
from tilewright.interpret.launch import Launcher
from tilewright.interpret.loops import Exit
from tilewright.interpret.loops import loop
from tilewright.interpret.memory.allocations import Memory
from tilewright.interpret.numbers.dtypes import INT32
from tilewright.interpret.run import Run
from tilewright.interpret.run import uniform
from tilewright.interpret.settings import Settings
from tilewright.interpret.translate.kernel import TranslatedKernel


def run_blocks(function, blocks, memory=None, step_limit=2**20):
    """Run a function written here instead of a translated kernel, with all blocks at once."""
    kernel = TranslatedKernel(name="kernel", function=function, block_bytes=1, in_order=False, typed=None)
    settings = Settings(step_limit=step_limit)
    run_grid(Work(kernel=kernel, grid=(blocks, 1, 1), arguments=(), memory=memory or Memory(), settings=settings))


def counting(counts, sizes):
    """A kernel whose blocks go around a loop `counts` times; `sizes` are the blocks in each attempt of an iteration."""

    def body(run, done, mine):
        sizes.append(run.size)
        if uniform(mine <= done):
            return Exit.BREAK, (done,)
        return Exit.CONTINUE, (done + 1,)

    def kernel(run):
        mine = counts[run.blocks]
        exit, (done,) = loop(run, body, (0,), (mine,), (INT32,))
        assert exit is Exit.END
        assert torch.equal(torch.as_tensor(done).expand(run.size), mine)

    return kernel


@pytest.mark.parametrize("blocks", [16, 64, 256])
def test_blocks_that_leave_at_their_own_count_take_no_more_than_what_each_takes(blocks):
    sizes = []
    counts = torch.arange(blocks).flip(0)
    run_blocks(counting(counts, sizes), blocks)
    # An attempt of all that are inside, and two parts: those that leave, and those that stay.
    assert len(sizes) <= 3 * blocks
    assert sum(sizes) <= 2 * int((counts + 1).sum())


def test_blocks_that_agree_run_once():
    sizes = []
    run_blocks(counting(torch.full((8,), 5), sizes), 8)
    assert sizes == [8] * 6


def test_what_an_iteration_did_before_blocks_disagreed_is_undone():
    results = torch.zeros(9, dtype=torch.int32)
    memory = Memory()
    memory.add(results)

    def body(run, index):
        addresses = results.data_ptr() + run.blocks * 4
        run.memory.write(addresses, run.memory.read(addresses, torch.int32) + 1)
        uniform(run.blocks % 3)
        uniform(run.blocks % 2)
        return Exit.CONTINUE, ()

    run_blocks(lambda run: loop(run, body, (), (), (), range(4)), 9, memory)
    assert results.tolist() == [4] * 9


def test_steps_of_parts_are_those_of_the_batch():
    def inner(run, index):
        return Exit.CONTINUE, ()

    def body(run, index):
        uniform(run.blocks)
        return loop(run, inner, (), (), (), range(5))[0] and (Exit.CONTINUE, ())

    taken = []

    def kernel(run):
        loop(run, body, (), (), (), range(2))
        taken.append(run.steps)

    run_blocks(kernel, 3)
    assert taken == [2 + 2 * 3 * 5]


def test_blocks_that_return_and_blocks_that_leave_run_again_in_two_groups():
    sizes = []

    def body(run):
        return (Exit.RETURN if uniform(run.blocks % 2 == 0) else Exit.BREAK), ()

    def kernel(run):
        sizes.append(run.size)
        loop(run, body, (), (), ())

    run_blocks(kernel, 8)
    assert sizes == [8, 4, 4]


def test_loop_that_one_block_never_leaves_fails():
    def body(run):
        return (Exit.BREAK if uniform(run.blocks < 5) else Exit.CONTINUE), ()

    with pytest.raises(FailedBlock) as caught:
        run_blocks(lambda run: loop(run, body, (), (), ()), 8, step_limit=100)
    assert isinstance(caught.value.error, StepLimitExceeded)
    assert caught.value.block == (5, 0, 0)


# Kernels


def launch(kernel, blocks, *arguments):
    Launcher().launch(0, (blocks,), kernel, arguments)


def test_values_of_all_kinds_are_carried():
    @ct.kernel
    def kernel(X, Y, Sums, Large, Flags, Chosen):
        b = ct.bid(0)
        mine = ct.load(X, (b, 0), (1, 4))
        total = ct.zeros((1, 4), ct.float32)
        large = ct.uint64(2**63)
        flag = b == 3
        array = X
        i = 0
        while i < b:
            total = total + mine
            if i % 2 == 1:
                large += ct.uint64(b)
                array = Y
            flag = not flag
            i += 1
        ct.store(Sums, (b, 0), total)
        ct.store(Large, (b,), large)
        ct.store(Flags, (b,), flag)
        ct.store(Chosen, (b, 0), ct.load(array, (b, 0), (1, 4)))

    blocks = 7
    x, y = torch.randn(2, blocks, 4)
    sums, chosen = torch.zeros(2, blocks, 4)
    large, flags = torch.zeros(blocks, dtype=torch.uint64), torch.zeros(blocks, dtype=torch.bool)
    launch(kernel, blocks, x, y, sums, large, flags, chosen)
    torch.testing.assert_close(sums, x * torch.arange(blocks)[:, None])
    assert large.tolist() == [2**63 + b * (b // 2) for b in range(blocks)]
    assert flags.tolist() == [(b == 3) ^ (b % 2 == 1) for b in range(blocks)]
    assert torch.equal(chosen, torch.where(torch.arange(blocks)[:, None] < 2, x, y))


def test_some_blocks_return_from_a_loop_that_others_leave():
    @ct.kernel
    def kernel(X):
        b = ct.bid(0)
        i = 0
        while True:
            i += 1
            if i * i > b:
                break
            if b % 5 == i:
                ct.store(X, (b,), -i)
                return
        ct.store(X, (b,), i)

    def expected(b):
        i = 0
        while True:
            i += 1
            if i * i > b:
                return i
            if b % 5 == i:
                return -i

    x = torch.zeros(40, dtype=torch.int32)
    launch(kernel, 40, x)
    assert x.tolist() == [expected(b) for b in range(40)]


def test_blocks_choose_between_lists_of_arrays():
    @ct.kernel
    def kernel(First, Second, Z):
        arrays = First
        for i in range(3):
            if ct.bid(0) == i:
                arrays = Second
        ct.store(Z, (ct.bid(0),), ct.load(arrays[1], (0,), (1,)))

    z = torch.zeros(5)
    first, second = [torch.zeros(1), torch.ones(1)], [torch.full((1,), 2.0), torch.full((1,), 3.0)]
    launch(kernel, 5, first, second, z)
    assert z.tolist() == [3, 3, 3, 1, 1]


def test_parts_have_their_own_slices_of_arrays(monkeypatch):
    steps = []
    monkeypatch.setattr(Run, "count_step", lambda run: steps.append(run.size))

    @ct.kernel
    def kernel(X, Sums):
        b = ct.bid(0)
        mine = X.slice(0, 4 * b, 4 * b + 4)
        total = ct.zeros((4,), ct.float32)
        i = 0
        while i < ct.bid(0) % 3:
            total = total + ct.load(mine, (0,), (4,))
            i += 1
        ct.store(Sums, (b,), total)

    x, sums = torch.randn(6 * 4), torch.zeros(6 * 4)
    launch(kernel, 6, x, sums)
    torch.testing.assert_close(sums.view(6, 4), x.view(6, 4) * (torch.arange(6) % 3)[:, None])
    assert len(steps) == 3  # nothing failed, so that all blocks went around together


def test_loops_in_loops_end_for_each_block_on_their_own():
    @ct.kernel
    def kernel(X):
        b = ct.bid(0)
        total = 0
        i = 0
        while i < b % 4:
            j = 0
            while j < b + i:
                j += 2
                total += i
            for k in range(b % 3):
                total += k
            i += 1
        ct.store(X, (b,), total)

    def expected(b):
        return sum(i * -(-(b + i) // 2) + sum(range(b % 3)) for i in range(b % 4))

    x = torch.zeros(30, dtype=torch.int32)
    launch(kernel, 30, x)
    assert x.tolist() == [expected(b) for b in range(30)]


def test_fault_in_a_loop_names_its_line_and_block():
    @ct.kernel
    def kernel(X):
        b = ct.bid(0)
        i = 0
        while i < b:
            i += 1
            if i == 4:
                ct.scatter(X, i, 1.0, check_bounds=False)

    with pytest.raises(OutOfBounds) as caught:
        launch(kernel, 8, torch.zeros(4))
    line = kernel._annotated_function.pyfunc.__code__.co_firstlineno + 7
    [note] = caught.value.__notes__
    assert note == f"kernel kernel, block (4, 0, 0) at {__file__}:{line}, in kernel"
