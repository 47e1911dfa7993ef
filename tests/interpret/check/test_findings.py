"""Each kind of fault: a kernel that has it, and one like it that has not."""

import inspect
import pickle

import cuda.tile as ct
import pytest
import torch

from tests.support.checking import findings
from tests.support.checking import launch
from tests.support.checking import only_finding
from tilewright.interpret.check import CheckError
from tilewright.interpret.check import Kind
from tilewright.interpret.check import fresh
from tilewright.interpret.check import written

Const = ct.Constant[int]


def line_of(kernel, text):
    """Line of this file that has `text` in the source of a kernel."""
    function = kernel._annotated_function.pyfunc
    with open(__file__) as source:
        lines = source.read().splitlines()
    first = function.__code__.co_firstlineno
    return next(number for number in range(first, len(lines) + 1) if text in lines[number - 1])


# Accesses outside of arrays


@ct.kernel
def copy_unchecked(x, out, size: Const):
    tile = ct.load(x, (ct.bid(0), 0), (1, size), check_bounds=False)
    ct.store(out, (ct.bid(0), 0), tile)


@pytest.mark.skipif(
    "check_bounds" not in inspect.signature(ct.load).parameters,
    reason="cuda-tile 1.5 always checks the bounds of tiles",
)
def test_a_tile_beyond_its_array_although_bounds_are_not_checked():
    x, out = torch.arange(24.0).view(3, 8), torch.zeros(3, 16)
    finding = only_finding(copy_unchecked, (3,), x, out, 16)
    assert finding.kind is Kind.OUTSIDE
    assert (finding.array, finding.index, finding.block) == ("x", (0, 8), (0, 0, 0))
    assert (finding.file, finding.line) == (__file__, line_of(copy_unchecked, "ct.load"))
    launch(copy_unchecked, (3,), x, out, 8)
    assert torch.equal(out[:, :8], x)


@ct.kernel
def gather_unchecked(x, out, first: int, size: Const):
    place = ct.arange(size, dtype=ct.int32) + first
    ct.store(out, (0,), ct.gather(x, (1, place), check_bounds=False))


def test_a_read_beyond_a_view_inside_of_its_storage():
    x = torch.arange(40.0).view(4, 10)[:, :4]
    out = torch.zeros(4)
    finding = only_finding(gather_unchecked, (1,), x, out, 2, 4)
    assert finding.kind is Kind.OUTSIDE
    assert (finding.array, finding.index) == ("x", (1, 4))
    assert "reads x[1, 4], outside of its shape (4, 4)" in finding.message
    launch(gather_unchecked, (1,), x, out, 0, 4)
    assert out.tolist() == [10.0, 11.0, 12.0, 13.0]


def test_an_access_beyond_the_storage_is_a_finding_too():
    finding = only_finding(gather_unchecked, (1,), torch.zeros(2, 4), torch.zeros(4), 10**6, 4)
    assert (finding.kind, finding.index) == (Kind.OUTSIDE, (250001, 0))


@ct.kernel
def write_raw(x, out):
    out.get_raw_memory().store_offset(ct.bid(0), ct.load(x, ct.bid(0), ()))


def test_a_raw_write_into_the_neighbour_of_a_slice_does_not_take_place():
    storage = torch.zeros(8)
    finding = only_finding(write_raw, (5,), torch.ones(8), storage[:4])
    assert (finding.kind, finding.array, finding.index, finding.block) == (Kind.OUTSIDE, "out", (4,), (4, 0, 0))
    assert storage.tolist() == [1.0] * 4 + [0.0] * 4
    launch(write_raw, (4,), torch.ones(8), storage[4:])
    assert storage.tolist() == [1.0] * 8


def test_an_array_is_not_the_other_array_of_the_same_storage():
    storage = torch.zeros(8)
    _, finding = findings(write_raw, (8,), storage[4:], storage[:4])  # the first one is of the loads
    assert (finding.array, finding.index) == ("out", (4,))


@ct.kernel
def write_items(arrays, size: Const):
    array = arrays[ct.bid(0)]
    ct.scatter(array, ct.arange(size, dtype=ct.int32), 1.0, check_bounds=False)


def test_arrays_of_a_list_are_known_by_their_place():
    storage = torch.zeros(12)
    arrays = [storage[:4], storage[8:]]
    launch(write_items, (2,), arrays, 4)
    assert storage.tolist() == [1.0] * 4 + [0.0] * 4 + [1.0] * 4
    found = findings(write_items, (2,), arrays, 8)
    assert [(finding.array, finding.index) for finding in found] == [("arrays[0]", (4,)), ("arrays[1]", (4,))]


@ct.kernel
def copy_tiles(x, out, size: Const):
    ct.store(out, (ct.bid(0),), ct.load(x, (ct.bid(0),), (size,), padding_mode=ct.PaddingMode.ZERO))


def test_a_tile_that_lies_wholly_outside_of_its_array():
    x, out = torch.rand(20), torch.zeros(20)
    read, write = findings(copy_tiles, (4,), x, out, 8)
    assert (read.kind, read.array, read.index, read.block) == (Kind.TILE, "x", (24,), (3, 0, 0))
    assert (write.kind, write.array, write.index) == (Kind.TILE, "out", (24,))
    launch(copy_tiles, (3,), x, out, 8)
    assert torch.equal(out, x)


# Padding


@ct.kernel
def row_maximum(x, out, size: Const):
    ct.store(out, (ct.bid(0),), ct.max(ct.load(x, (ct.bid(0), 0), (1, size))))


@ct.kernel
def row_maximum_padded(x, out, size: Const):
    tile = ct.load(x, (ct.bid(0), 0), (1, size), padding_mode=ct.PaddingMode.NEG_INF)
    ct.store(out, (ct.bid(0),), ct.max(tile))


def test_undetermined_padding_that_reaches_a_result():
    x, out = torch.rand(3, 5), torch.zeros(3)  # zeros never are the maximum, but what a GPU finds there may be
    finding = only_finding(row_maximum, (3,), x, out, 8)
    assert (finding.kind, finding.array, finding.index, finding.block) == (Kind.PADDING, "out", (0,), (0, 0, 0))
    assert finding.line == line_of(row_maximum, "ct.store")
    assert torch.equal(out, x.amax(1))  # of the run with zeros
    launch(row_maximum_padded, (3,), x, out, 8)
    assert torch.equal(out, x.amax(1))


@ct.kernel
def count_to_maximum(x, out, size: Const):
    last, number = ct.max(ct.load(x, (0,), (size,))), 0
    while number < last:
        number += 1
    ct.store(out, (0,), number)


def test_undetermined_padding_that_decides_how_long_a_loop_runs():
    finding = only_finding(count_to_maximum, (1,), torch.tensor([1, 5, 3]), torch.zeros(1, dtype=torch.int32), 4)
    assert (finding.kind, finding.block) == (Kind.PADDING, (0, 0, 0))
    assert "the kernel fails with other padding" in finding.message


@ct.kernel
def double(x, out, size: Const):
    ct.store(out, (ct.bid(0),), 2 * ct.load(x, (ct.bid(0),), (size,)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.float16])
def test_undetermined_padding_that_is_dropped_is_no_fault(dtype):
    x, out = torch.arange(10).to(dtype), torch.zeros(10, dtype=dtype)
    launch(double, (2,), x, out, 8)
    assert torch.equal(out, 2 * x)


@ct.kernel
def weighted_sums(x, weights, out, n, size: Const):
    tile = ct.load(x, (ct.bid(0), 0), (1, size))
    valid = (ct.arange(size, dtype=ct.int32)[None, :] < n).astype(ct.float32)
    products = ct.mma(valid.astype(tile.dtype), ct.load(weights, (0, 0), (size, 1)), ct.zeros((1, 1), ct.float32))
    ct.store(out, (ct.bid(0), 0), ct.sum(tile * tile * valid) + ct.sum(ct.exp(tile) * valid) + products)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_undetermined_padding_that_is_multiplied_by_zero_is_no_fault(dtype):
    x, weights, out = torch.rand(3, 5).to(dtype), torch.rand(5, 1).to(dtype), torch.zeros(3, 1)
    launch(weighted_sums, (3,), x, weights, out, 5, 8)
    x, weights = x.double(), weights.double()
    expected = ((x * x).sum(1) + x.exp().sum(1) + weights.sum())[:, None]
    torch.testing.assert_close(out.double(), expected, rtol=1e-2, atol=1e-2)


@ct.kernel
def root_of_padding(x, out, n, size: Const):
    valid = (ct.arange(size, dtype=ct.int32) < n).astype(ct.float32)
    ct.store(out, (0,), ct.sum(ct.sqrt(ct.load(x, (0,), (size,))) * valid))


def test_undetermined_padding_that_becomes_nan_without_overflow():
    assert only_finding(root_of_padding, (1,), torch.ones(5), torch.zeros(1), 5, 8).kind is Kind.PADDING


# Memory that nobody has written


@ct.kernel
def accumulate(x, out, size: Const):
    place = (ct.bid(0),)
    ct.store(out, place, ct.load(out, place, (size,)) + ct.load(x, place, (size,)))


def test_a_read_of_what_nothing_has_written():
    x, out = torch.ones(8), torch.zeros(8)
    fresh(out)
    finding = only_finding(accumulate, (2,), x, out, 4)
    assert (finding.kind, finding.array, finding.index, finding.block) == (Kind.UNWRITTEN, "out", (0,), (0, 0, 0))
    launch(accumulate, (2,), x, out, 4)  # the launch before has written it
    fresh(out)
    written(out[:4])
    finding = only_finding(accumulate, (2,), x, out, 4)
    assert (finding.index, finding.block) == ((4,), (1, 0, 0))


def test_a_kernel_may_read_what_it_has_written_itself():
    out = torch.zeros(8)
    fresh(out)
    launch(double, (2,), torch.ones(8), out, 4)
    launch(accumulate, (2,), torch.ones(8), out, 4)
    assert out.tolist() == [3.0] * 8


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


def test_release_and_acquire_order_blocks():
    def arguments():
        return torch.arange(16), torch.zeros(4).long(), torch.zeros(1, dtype=torch.int32), torch.zeros(1).long(), 4, 4

    out = (passed := arguments())[3]
    launch(reduce_in_last_block, (4,), *passed)
    assert out.tolist() == [120]
    (finding,) = findings(reduce_in_last_block_relaxed, (4,), *arguments())
    assert (finding.kind, finding.array, finding.block) == (Kind.READ, "partial", (3, 0, 0))


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


# Overflow, assumptions, assertions


@ct.kernel
def rows_by_hand(x, out, stride: int, size: Const):
    first = ct.bid(0) * stride
    place = first + ct.arange(size, dtype=ct.int32)
    ct.scatter(out, place, ct.gather(x, place))


def test_index_arithmetic_that_overflows():
    x, out = torch.arange(8.0), torch.zeros(8)
    finding = only_finding(rows_by_hand, (3,), x, out, 2**30 + 1, 4)
    assert (finding.kind, finding.block) == (Kind.OVERFLOW, (2, 0, 0))
    assert finding.message == "2 * 1073741825 is not in the range of int32"
    assert finding.line == line_of(rows_by_hand, "first =")
    launch(rows_by_hand, (2,), x, out, 4, 4)
    assert torch.equal(out, x)


@ct.kernel
def hash_places(x, out, size: Const):
    number = ct.arange(size, dtype=ct.int32) * 1103515245 + 12345
    ct.store(out, (0,), ct.gather(x, (number >> 16) & 7))


def test_a_hash_may_overflow():
    numbers = torch.arange(8) * 1103515245 + 12345  # in 64 bits
    x, out = torch.arange(8.0), torch.zeros(8)
    launch(hash_places, (1,), x, out, 8)
    assert out.tolist() == ((numbers >> 16) & 7).float().tolist()


@ct.kernel
def load_assuming(x, out, first: int):
    start = ct.assume_divisible_by(first, 4)
    ct.store(out, (0,), ct.gather(x, start + ct.arange(4, dtype=ct.int32)))


def test_an_assumption_that_does_not_hold():
    x, out = torch.arange(16.0), torch.zeros(4)
    finding = only_finding(load_assuming, (1,), x, out, 6)
    assert finding.kind is Kind.ASSUMPTION
    assert finding.message == "the kernel assumes that a value is a multiple of 4, but it is 6"
    launch(load_assuming, (1,), x, out, 8)
    assert out.tolist() == [8.0, 9.0, 10.0, 11.0]


@ct.kernel
def assert_positive(x, out, size: Const):
    tile = ct.load(x, (ct.bid(0),), (size,))
    ct.assert_(tile > 0, "x must be positive")  # noqa: PT009
    ct.store(out, (ct.bid(0),), tile)


def test_an_assertion_that_does_not_hold():
    x, out = torch.tensor([1.0, 2.0, 3.0, -4.0]), torch.zeros(4)
    finding = only_finding(assert_positive, (2,), x, out, 2)
    assert (finding.kind, finding.block) == (Kind.ASSERTION, (1, 0, 0))
    assert "x must be positive" in finding.message
    launch(assert_positive, (2,), x.abs(), out, 2)
    assert torch.equal(out, x.abs())


# Reports


@ct.kernel
def many_faults(out):
    for step in ct.static_iter(range(12)):
        ct.scatter(out, ct.bid(0) * 0 + step, ct.bid(0))


def test_findings_are_told_once_for_each_line_array_and_kind():
    out = torch.zeros(12, dtype=torch.int32)
    found = findings(many_faults, (5,), out)
    assert [finding.kind for finding in found] == [Kind.WRITES, Kind.ORDER]


def test_an_error_tells_what_where_and_survives_pickling():
    x, out = torch.rand(3, 5), torch.zeros(3)
    with pytest.raises(CheckError) as error:
        launch(row_maximum, (3,), x, out, 8)
    headline, *lines = str(error.value).splitlines()
    assert headline == "1 fault(s) in kernel row_maximum"
    assert lines == [
        "result that depends on padding",
        "  block (0, 0, 0): what is stored to out[0] depends on undetermined padding: "
        f"give a padding to the load of x in {__file__}:{line_of(row_maximum, 'ct.load')}",
        f"  {__file__}:{line_of(row_maximum, 'ct.store')}, in row_maximum",
    ]
    assert pickle.loads(pickle.dumps(error.value)).findings == error.value.findings
