"""Arithmetic of indices that overflows is found, that of values is not."""

import cuda.tile as ct
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.support.checking import findings
from tests.support.checking import launch
from tilewright.interpret.check import Kind
from tilewright.interpret.check.overflow import first_overflow
from tilewright.interpret.numbers.dtypes import INT8
from tilewright.interpret.numbers.dtypes import INT32
from tilewright.interpret.numbers.dtypes import INT64

Const = ct.Constant[int]
EXACT = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y}


@given(st.sampled_from(sorted(EXACT)), st.sampled_from([INT8, INT32]), st.data(), st.booleans())
def test_overflows_are_results_out_of_range(fn, held, data, tiles):
    x, y = (data.draw(st.integers(held.lowest, held.highest)) for _ in range(2))
    operands = (torch.tensor([[x]], dtype=held.compute), torch.tensor([[y]], dtype=held.compute)) if tiles else (x, y)
    fits = held.lowest <= EXACT[fn](x, y) <= held.highest
    assert (first_overflow(fn, *operands, held) is None) == fits


def test_tiles_of_64_bits_are_tested_too():
    big = torch.tensor([2**40, 2**20])
    assert first_overflow("mul", big, 2**30, INT64) == f"{2**40} * {2**30}"
    assert first_overflow("mul", torch.tensor([3]), 2**62, INT64) == f"3 * {2**62}"  # between 2**63 and 2**64
    assert first_overflow("add", torch.tensor([2**62]), 2**61, INT64) is None


@ct.kernel
def accumulated_offset(x, out, step: int, size: Const):
    offset = 0
    for _ in range(4):
        offset += step
    place = offset + ct.arange(size, dtype=ct.int32)
    ct.scatter(out, ct.arange(size, dtype=ct.int32), ct.gather(x, place))


def test_an_offset_that_overflows_in_a_loop():
    x, out = torch.arange(64.0), torch.zeros(4)
    found = findings(accumulated_offset, (1,), x, out, 2**29, 4)
    assert [finding.kind for finding in found] == [Kind.OVERFLOW]
    launch(accumulated_offset, (1,), x, out, 10, 4)
    assert out.tolist() == [40.0, 41.0, 42.0, 43.0]


@ct.kernel
def overflowing_values(x, out, size: Const):
    tile = ct.load(x, (0,), (size,))
    ct.store(out, (0,), tile * tile + tile)


def test_values_may_overflow():
    x, out = torch.tensor([2**30, 5, 7, 9], dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    launch(overflowing_values, (1,), x, out, 4)
    assert torch.equal(out, x * x + x)
