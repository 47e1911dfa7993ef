"""Kernels of operators that once spilled registers on an architecture where none should, with inputs of any kind."""

from pathlib import Path

import pytest

from tilewright.aot.compile import compile_operator
from tilewright.config import find_host
from tilewright.cutile.targets import select
from tilewright.verify.operators import choose
from tilewright.verify.operators import find_operators

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("batch_norm", "bfloat16"), ("bmm", "bfloat16"), ("rms_norm", "bfloat16"), ("scaled_matmul", "float8_e4m3fn")],
)
def test_no_registers_are_spilled(name, dtype):
    host = find_host(ROOT)
    (operator,) = choose(find_operators(host), [name], host)
    result = compile_operator(operator, targets=select("sm_90,sm_100"), dtypes=(dtype,))
    assert result.kernels
    assert not result.errors
    assert [k for k in result.kernels if k.resources.spilled_bytes] == []
