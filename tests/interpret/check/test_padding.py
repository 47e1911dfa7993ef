"""Undetermined padding that decides a result: a kernel that has the fault, and one like it that has not."""

import pickle

import cuda.tile as ct
import pytest
import torch

from tests.support.checking import double
from tests.support.checking import findings
from tests.support.checking import launch
from tests.support.checking import line_of
from tests.support.checking import only_finding
from tilewright.interpret.check import CheckError
from tilewright.interpret.check import Kind

Const = ct.Constant[int]


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


@ct.kernel
def positive_part(x, out, size: Const):
    tile = ct.maximum(ct.load(x, (0,), (size,)), 0.0)
    ct.store(out, (0,), ct.sum(tile + (tile * 2.0 - tile * 2.0)))


def test_undetermined_padding_that_counts_only_where_it_is_positive_and_small():
    # 0, -1 and the lowest number add nothing, and twice the highest one is infinite: the difference is a NaN.
    assert only_finding(positive_part, (1,), torch.ones(5), torch.zeros(1), 8).kind is Kind.PADDING


@ct.kernel
def take_two_numbers(x, out, places, counter, size: Const):
    first = ct.atomic_add(counter, 0, 1)
    ct.atomic_add(counter, 0, 1)
    ct.scatter(places, ct.bid(0), first)
    ct.store(out, (ct.bid(0), 0), ct.load(x, (ct.bid(0), 0), (1, size)))


def test_the_order_of_blocks_is_no_matter_of_padding():
    x, out = torch.rand(4, 5), torch.zeros(4, 5)
    places, counter = torch.zeros(4, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    found = findings(take_two_numbers, (4,), x, out, places, counter, 8)
    assert {finding.kind for finding in found} == {Kind.ORDER}
    assert places.tolist() == [0, 2, 4, 6]
    assert torch.equal(out, x)


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
