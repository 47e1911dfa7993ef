"""Batches of blocks, run by functions written here instead of translated kernels."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies

from tilewright.interpret.faults import StepLimitExceeded
from tilewright.interpret.grid import FailedBlock
from tilewright.interpret.grid import Work
from tilewright.interpret.grid import run_grid
from tilewright.interpret.memory.allocations import Memory
from tilewright.interpret.run import Diverge
from tilewright.interpret.run import uniform
from tilewright.interpret.settings import Settings
from tilewright.interpret.translate.kernel import TranslatedKernel


def work(function, grid, *, at_once=8, in_order=False, memory=None, step_limit=100, block_bytes=1000):
    kernel = TranslatedKernel(name="kernel", function=function, block_bytes=block_bytes, in_order=in_order, typed=None)
    settings = Settings(batch_bytes=at_once * block_bytes, step_limit=step_limit)
    return Work(kernel=kernel, grid=grid, arguments=(), memory=memory or Memory(), settings=settings)


def counting(results):
    """Memory of `results`, and what adds one to the element of each block of a run."""
    memory = Memory()
    memory.add(results)

    def count(run):
        addresses = results.data_ptr() + run.blocks * results.element_size()
        run.memory.write(addresses, run.memory.read(addresses, results.dtype) + 1)

    return memory, count


@given(
    grid=strategies.tuples(*[strategies.integers(1, 5)] * 3),
    at_once=strategies.integers(1, 200),
    in_order=strategies.booleans(),
)
def test_every_block_runs_once_and_in_order(grid, at_once, in_order):
    batches = []
    run_grid(work(lambda run: batches.append(run.blocks.tolist()), grid, at_once=at_once, in_order=in_order))
    assert list(itertools.chain(*batches)) == list(range(grid[0] * grid[1] * grid[2]))
    assert max(map(len, batches)) <= (1 if in_order else at_once)


def test_blocks_run_in_the_order_that_is_asked_for():
    batches = []
    order = torch.tensor([5, 3, 4, 0, 1, 2])
    run_grid(work(lambda run: batches.append(run.blocks.tolist()), (6, 1, 1), at_once=4), order)
    assert batches == [[5, 3, 4, 0], [1, 2]]


def test_blocks_that_disagree_run_in_groups_that_agree():
    finished = []

    def function(run):
        uniform(run.blocks % 3)
        finished.append(run.blocks.tolist())

    run_grid(work(function, (8, 1, 1)))
    assert finished == [[0, 3, 6], [1, 4, 7], [2, 5]]


def test_groups_that_disagree_again_are_split_again():
    finished = []

    def function(run):
        uniform(run.blocks % 2)
        uniform(run.blocks < 4)
        finished.append(run.blocks.tolist())

    run_grid(work(function, (8, 1, 1)))
    assert finished == [[0, 2], [4, 6], [1, 3], [5, 7]]


def test_writes_before_a_split_are_undone():
    results = torch.zeros(10, dtype=torch.int32)
    memory, count = counting(results)

    def function(run):
        count(run)
        uniform(run.blocks % 4)

    run_grid(work(function, (10, 1, 1), memory=memory))
    assert results.tolist() == [1] * 10


def test_without_a_condition_blocks_run_one_by_one():
    finished = []

    def function(run):
        if run.size > 1:
            raise Diverge
        finished.append(run.blocks.tolist())

    run_grid(work(function, (5, 1, 1)))
    assert finished == [[0], [1], [2], [3], [4]]


@pytest.mark.parametrize("at_once", [1, 3, 64])
def test_first_block_that_fails_is_named_and_those_before_it_have_run(at_once):
    results = torch.zeros(40, dtype=torch.int32)
    memory, count = counting(results)

    def function(run):
        count(run)
        if bool(torch.isin(run.blocks, torch.tensor([23, 31])).any()):
            raise ValueError("wrong")

    with pytest.raises(FailedBlock) as caught:
        run_grid(work(function, (4, 5, 2), at_once=at_once, memory=memory))
    assert caught.value.block == (3, 0, 1)  # 23 = 3 + 4 * (0 + 5 * 1)
    assert str(caught.value.error) == "wrong"
    assert results[:23].tolist() == [1] * 23
    assert results[24:].tolist() == [0] * 16


def test_batch_that_memory_does_not_suffice_for_is_halved():
    finished = []

    def function(run):
        if run.size > 3:
            raise RuntimeError("not enough memory")
        finished.append(run.blocks.tolist())

    run_grid(work(function, (8, 1, 1)))
    assert finished == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_writes_that_are_logged_keep_the_limit_of_memory():
    results = torch.zeros(64, dtype=torch.int32)
    memory, count = counting(results)
    finished = []

    def function(run):
        for _ in range(10):
            count(run)
        finished.append(run.size)

    # Each of the 10 writes of a block logs an old value of 4 bytes and its place, of 8; 512 bytes are for 4 blocks.
    run_grid(work(function, (64, 1, 1), at_once=64, block_bytes=8, memory=memory))
    assert results.tolist() == [10] * 64
    assert finished == [4] * 16


def test_block_that_waits_for_an_earlier_one_ends():
    flags = torch.zeros(4, dtype=torch.int32)
    memory = Memory()
    memory.add(flags)

    def function(run):
        """Wait until the block before is done, then set the own flag."""
        own = flags.data_ptr() + run.blocks * 4
        while bool((run.blocks > 0).any()):
            run.count_step()
            if uniform(run.memory.read((own - 4).clamp(min=flags.data_ptr()), torch.int32)):
                break
        run.memory.write(own, torch.ones(run.size, dtype=torch.int32))

    run_grid(work(function, (4, 1, 1), memory=memory))
    assert flags.tolist() == [1, 1, 1, 1]


def test_block_that_never_ends_fails():
    def function(run):
        while True:
            run.count_step()

    with pytest.raises(FailedBlock) as caught:
        run_grid(work(function, (4, 1, 1)))
    assert caught.value.block == (0, 0, 0)
    assert isinstance(caught.value.error, StepLimitExceeded)
    assert "within 100 iterations" in str(caught.value.error)


def test_interrupt_leaves_no_half_done_batch():
    results = torch.zeros(8, dtype=torch.int32)
    memory, count = counting(results)

    def function(run):
        count(run)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_grid(work(function, (8, 1, 1), memory=memory))
    assert results.tolist() == [0] * 8


def looping(steps, batches):
    """A function whose blocks all take this many iterations."""

    def function(run):
        batches.append(run.size)
        for _ in range(steps):
            run.count_step()

    return function


def test_large_batch_does_not_wait_for_a_loop_that_never_ends():
    batches, taken = [], []

    def function(run):
        batches.append(run.size)
        try:
            for _ in range(10**9):
                run.count_step()
        finally:
            taken.append(run.steps * run.size)

    with pytest.raises(FailedBlock) as caught:
        run_grid(work(function, (2**16, 1, 1), at_once=2**16, step_limit=2**20))
    assert isinstance(caught.value.error, StepLimitExceeded)
    assert "within 1048576 iterations" in str(caught.value.error)
    assert batches == [2**16, 1]
    assert sum(taken) < 2**29


def test_long_loop_that_ends_costs_few_attempts():
    batches = []
    run_grid(work(looping(50_000, batches), (1000, 1, 1), at_once=1000, step_limit=2**20))
    assert batches == [1000, 1, 999, 1, 998]


def test_batch_that_reaches_the_limit_is_run_one_by_one():
    batches = []
    with pytest.raises(FailedBlock):
        run_grid(work(looping(101, batches), (5, 1, 1), step_limit=100))
    assert batches == [5, 1]
