"""Other kinds of faults, with a kernel that has each and one that has not, and how faults are told."""

import cuda.tile as ct
import torch

from tests.support.checking import double
from tests.support.checking import findings
from tests.support.checking import launch
from tests.support.checking import line_of
from tests.support.checking import only_finding
from tilewright.interpret.check import Kind
from tilewright.interpret.check import fresh
from tilewright.interpret.check import written
from tilewright.interpret.check.findings import Finding
from tilewright.interpret.check.findings import Findings
from tilewright.interpret.launch import Launcher
from tilewright.interpret.settings import Settings

Const = ct.Constant[int]


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


def test_a_kernel_writes_all_bytes_of_an_element():
    out = torch.zeros(8)
    fresh(out)
    launch(double, (2,), torch.ones(8), out, 4)
    copied = torch.zeros(32, dtype=torch.uint8)
    launch(double, (2,), out.view(torch.uint8), copied, 16)
    assert torch.equal(copied, out.view(torch.uint8) * 2)


def test_a_kernel_may_read_what_it_has_written_itself():
    out = torch.zeros(8)
    fresh(out)
    launch(double, (2,), torch.ones(8), out, 4)
    launch(accumulate, (2,), torch.ones(8), out, 4)
    assert out.tolist() == [3.0] * 8


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


def test_ten_of_a_kind_are_kept():
    found = Findings()
    for place in range(12):
        found.add(Finding(Kind.OUTSIDE, "beyond", array=f"x[{place}]"))
        found.add(Finding(Kind.LANES, "several", array="x"))
    kept = found.all()
    assert [each.array for each in kept if each.kind is Kind.OUTSIDE] == [f"x[{place}]" for place in range(10)]
    assert [each.array for each in kept if each.kind is Kind.LANES] == ["x"]


@ct.kernel
def print_block(out):
    ct.printf("%d ", ct.bid(0))
    ct.store(out, (ct.bid(0),), 1)


def test_what_a_kernel_prints_is_printed_once():
    printed = []
    out = torch.zeros(3, dtype=torch.int32)
    Launcher(Settings(check=True), output=printed.append).launch(0, (3,), print_block, (out,))
    assert "".join(printed) == "0 1 2 "
