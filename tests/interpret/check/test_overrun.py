"""Stores that TMA would make beside their array: a kernel that has the fault, and ones like it that have not."""

import cuda.tile as ct
import pytest
import torch

from tests.support.checking import findings
from tests.support.checking import launch
from tests.support.checking import line_of
from tests.support.checking import only_finding
from tilewright.interpret.check import Kind

Const = ct.Constant[int]
ZERO = ct.PaddingMode.ZERO


@ct.kernel
def row_sums(x, out, rows: Const, TMA: ct.Constant[bool]):
    total = ct.sum(ct.load(x, (ct.bid(0), 0), (rows, 16), padding_mode=ZERO), axis=1)
    ct.store(out, (ct.bid(0),), total.astype(out.dtype), allow_tma=TMA)


@ct.kernel
def product(a, b, out, TMA: ct.Constant[bool]):
    acc = ct.zeros((16, 16), ct.float32)
    for k in range(ct.num_tiles(a, 1, (16, 16))):
        ta = ct.load(a, (ct.bid(0), k), (16, 16), padding_mode=ZERO)
        tb = ct.load(b, (k, ct.bid(1)), (16, 16), padding_mode=ZERO)
        acc = ct.mma(ta, tb, acc)
    ct.store(out, (ct.bid(0), ct.bid(1)), (acc + 1.0).astype(out.dtype), allow_tma=TMA)


@ct.kernel
def double_rows(x, out, size: Const):
    ct.store(out, (ct.bid(0), 0), 2 * ct.load(x, (ct.bid(0), 0), (4, size), padding_mode=ZERO))


@ct.kernel
def less_maximum(x, out, size: Const):
    tx = ct.load(x, (ct.bid(0), 0), (4, size), padding_mode=ZERO)
    ct.store(out, (ct.bid(0), 0), tx - ct.max(tx, axis=1, keepdims=True))


def test_sums_in_front_of_other_numbers():
    x, memory = torch.rand(42, 16), torch.zeros(80)
    finding = only_finding(row_sums, (6,), x, memory[16:58], 8, True)
    assert (finding.kind, finding.array, finding.index) == (Kind.BESIDE, "out", (42,))
    assert finding.block == (5, 0, 0)  # the last one alone
    assert (finding.file, finding.line) == (__file__, line_of(row_sums, "ct.store"))
    assert finding.message == ("TMA stores 16 bytes at a time: it would write 8 bytes beside out; pass allow_tma=False")
    torch.testing.assert_close(memory[16:58], x.sum(1))  # the store itself took place
    launch(row_sums, (6,), x, memory[16:58], 8, False)


@pytest.mark.parametrize(
    ("out", "rows"),
    [
        (torch.zeros(80)[16:56], 8),  # whole units
        (torch.zeros(80)[17:59], 8),  # from another address
        (torch.zeros(42), 8),  # the end of memory
        (torch.zeros(42, 20)[:, 3], 8),  # not contiguous
        (torch.zeros(80)[16:58], 2),  # of tiles smaller than a unit
        (torch.zeros(80)[16:17], 8),  # of one element
    ],
    ids=["whole units", "address", "own memory", "strided", "small tiles", "one element"],
)
def test_sums_that_are_not_stored_beside(out, rows):
    launch(row_sums, (-(-len(out) // rows),), torch.rand(len(out), 16), out, rows, True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_product_in_wider_rows(dtype):
    a, b = torch.rand(70, 24), torch.rand(24, 37)
    memory = torch.zeros(70, 48, dtype=dtype)
    finding = only_finding(product, (5, 3), a, b, memory[:, :37], True)
    assert (finding.kind, finding.array, finding.index, finding.block) == (Kind.BESIDE, "out", (0, 37), (0, 2, 0))
    assert f"write {(-37 * dtype.itemsize) % 16} bytes beside out" in finding.message
    launch(product, (5, 3), a, b, memory[:, :37], False)
    launch(product, (5, 3), a, b, memory[:, :37], True, arch="sm_80")


def test_a_product_in_dense_rows():
    a, b = torch.rand(70, 24), torch.rand(24, 37)
    memory = torch.zeros(71, 37)
    launch(product, (5, 3), a, b, memory[:70], True)
    finding = only_finding(product, (1, 3), a[:1], b, memory[:1], True)
    assert (finding.kind, finding.index) == (Kind.BESIDE, (0, 37))
    launch(product, (1, 3), a[:1], b, memory[70:], True)


def test_what_is_no_more_than_elementwise_is_not_stored_by_tma():
    memory = torch.zeros(8, 48)
    launch(double_rows, (2,), torch.rand(8, 37), memory[:, :37], 64)
    (finding,) = findings(less_maximum, (2,), torch.rand(8, 37), memory[:, :37], 64)
    assert finding.kind is Kind.BESIDE
