"""Which addresses are elements of an array, and of which index."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tilewright.interpret.check.extents import contains
from tilewright.interpret.check.extents import elements_of
from tilewright.interpret.check.extents import index_of
from tilewright.interpret.memory.places import Extent


@st.composite
def extents(draw):
    """An array whose elements do not overlap, except for dimensions of stride 0."""
    shape, strides, step = [], [], 1
    for _ in range(draw(st.integers(0, 3))):
        size = draw(st.integers(1, 4))
        expanded = draw(st.booleans()) and draw(st.booleans())
        stride = 0 if expanded else step * draw(st.integers(1, 2))
        shape.append(size)
        strides.append(stride)
        step = step if expanded else stride * size
    axes = draw(st.permutations(range(len(shape))))
    return Extent("x", 64, tuple(shape[a] for a in axes), tuple(strides[a] for a in axes), torch.int16)


def elements(extent):
    """Index (0 along expanded dimensions) of the element at each address, by going through all."""
    found = {}
    for place in itertools.product(*map(range, extent.shape)):
        address = extent.address + 2 * sum(a * b for a, b in zip(place, extent.strides, strict=True))
        found[address] = tuple(a if stride else 0 for a, stride in zip(place, extent.strides, strict=True))
    return found


@given(extents())
def test_the_elements_of_an_array_are_known_with_their_index(extent):
    known = elements(extent)
    addresses = list(range(50, extent.end + 14))
    inside = contains(extent, torch.tensor(addresses)).tolist()
    assert [address for address, flag in zip(addresses, inside, strict=True) if flag] == sorted(known)
    assert {address: index_of(extent, address) for address in known} == known


@pytest.mark.parametrize(("distance", "index"), [(5, (0, 5)), (-1, (-1, 9)), (40, (4, 0)), (7, (0, 7))])
def test_an_element_outside_has_an_index_beyond_the_shape(distance, index):
    extent = Extent("x", 640, (4, 5), (10, 1), torch.float32)
    assert index_of(extent, 640 + 4 * distance) == index


def test_an_array_of_one_element_has_indices_beyond_it():
    assert index_of(Extent("x", 64, (1, 1), (1, 1), torch.float32), 64 + 12) == (0, 3)


def test_an_array_that_overlaps_itself_has_all_elements_between_the_first_and_the_last():
    extent = Extent("x", 64, (3, 3), (2, 1), torch.uint8)  # windows of 3 that begin at every second element
    assert contains(extent, torch.arange(62, 74)).tolist() == [False] * 2 + [True] * 7 + [False] * 3


def test_an_array_without_elements_contains_nothing():
    extent = Extent("x", 64, (0, 4), (4, 1), torch.int32)
    assert not contains(extent, torch.arange(60, 72)).any()


def test_the_elements_are_found_in_a_copy_of_the_memory():
    copy = torch.arange(12, dtype=torch.int16).view(torch.uint8)
    extent = Extent("x", 104, (2, 2), (3, 1), torch.int16)
    assert elements_of(extent, copy, 100, torch.int16).tolist() == [[2, 3], [5, 6]]
