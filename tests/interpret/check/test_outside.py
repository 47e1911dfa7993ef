"""Accesses outside of arrays: a kernel that has the fault, and one like it that has not."""

import inspect

import cuda.tile as ct
import pytest
import torch

from tests.support.checking import findings
from tests.support.checking import launch
from tests.support.checking import line_of
from tests.support.checking import only_finding
from tilewright.interpret.check import Kind

Const = ct.Constant[int]


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


@ct.kernel
def add_raw(out):
    out.get_raw_memory().atomic_add_offset(ct.bid(0), 1)


def test_an_atomic_operation_on_the_neighbour_of_a_slice_does_not_take_place():
    storage = torch.zeros(8, dtype=torch.int32)
    finding = only_finding(add_raw, (5,), storage[:4])
    assert (finding.kind, finding.array, finding.index, finding.block) == (Kind.OUTSIDE, "out", (4,), (4, 0, 0))
    assert "updates out[4], outside of its shape (4,)" in finding.message
    assert storage.tolist() == [1] * 4 + [0] * 4


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
