"""How dtypes are held in memory and in tiles."""

from typing import NamedTuple

import cuda.tile as ct
import numpy as np
import pytest
import torch
from cuda.tile._datatype import pointer_dtype
from hypothesis import given
from hypothesis import strategies as st

from tilewright.interpret.faults import UnsupportedOperation
from tilewright.interpret.numbers import dtypes


class Named(NamedTuple):
    name: str


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("name", [each.name for each in dtypes.NUMERIC if hasattr(ct, each.name)])
def test_every_dtype_has_the_width_that_the_compiler_gives_it(name):
    each = dtypes.element(getattr(ct, name))
    assert (each.name, each.bits) == (name, getattr(ct, name).bitwidth)


@pytest.mark.parametrize("name", INTEGERS)
def test_bounds_are_those_of_numpy(name):
    each = dtypes.element(getattr(ct, name))
    assert (each.lowest, each.highest) == (np.iinfo(name).min, np.iinfo(name).max)


@pytest.mark.parametrize("name", INTEGERS)
def test_memory_survives_the_way_into_a_tile_and_back(name):
    each = dtypes.element(getattr(ct, name))
    memory = torch.tensor([each.lowest, each.highest, 0, 1, 77], dtype=getattr(torch, name)).view(each.storage)
    tile = dtypes.from_storage(memory, each)
    assert tile.dtype == each.compute
    if name != "uint64":
        assert tile.tolist() == [each.lowest, each.highest, 0, 1, 77]
    assert torch.equal(dtypes.to_storage(tile, each), memory)


@pytest.mark.parametrize("name", INTEGERS)
@given(value=st.integers(-(2**70), 2**70))
def test_integers_wrap_as_in_numpy(name, value):
    each = dtypes.element(getattr(ct, name))
    expected = np.uint64(value % 2**64).astype(name)
    assert dtypes.wrap(value, each) == int(expected)


def test_every_number_but_zero_is_true():
    assert [dtypes.wrap(value, dtypes.BOOL) for value in (0, 1, 2, -1)] == [False, True, True, True]


def test_scalars_become_tiles_of_one_element():
    assert dtypes.as_tensor(2**64 - 1, dtypes.UINT64).tolist() == [-1]
    assert dtypes.as_tensor(True, dtypes.BOOL).tolist() == [True]
    tile = torch.zeros(2, 3)
    assert dtypes.as_tensor(tile, dtypes.FLOAT32) is tile


def test_pointers_are_addresses():
    assert dtypes.element(pointer_dtype(ct.float32)) is dtypes.POINTER


def test_dtypes_without_a_meaning_are_named():
    with pytest.raises(UnsupportedOperation, match="does not know the dtype float3\ninstall a release"):
        dtypes.element(Named("float3"))
