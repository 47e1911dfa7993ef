"""No kernel of a reference operator spills registers on sm_90 and sm_100."""

import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.aot.compile import compile_operator
from tilewright.config import find_host
from tilewright.cutile.targets import select
from tilewright.verify.operators import choose
from tilewright.verify.operators import find_operators

ROOT = Path(__file__).parents[2]
HOST = find_host(ROOT)
NAMES = [operator.name for operator in find_operators(HOST)]
QUICK = "bmm"  # the others take minutes


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == QUICK else pytest.mark.slow) for n in NAMES])
def test_no_registers_are_spilled(name):
    (operator,) = choose(find_operators(HOST), [name], HOST)
    result = compile_operator(operator, targets=select("sm_90,sm_100"))
    assert result.kernels
    assert not result.errors
    assert [k for k in result.kernels if k.resources.spilled_bytes] == []


@pytest.mark.parametrize(
    ("archs", "name", "dtype", "columns"),
    [
        ("sm_90", "cross_entropy", "bfloat16", (1000, 1001)),
        ("sm_90", "cross_entropy", "bfloat16", (50264, 8001)),
        ("sm_90,sm_100", "dropout", "float32", (4096, 4001)),
        ("sm_90", "layer_norm", "bfloat16", (11008, 11007)),
        ("sm_90", "rms_norm", "bfloat16", (16384, 16383)),
        ("sm_90", "softmax", "bfloat16", (16384, 16383)),
        ("sm_90", "softmax", "float32", (11008, 8191)),
    ],
    ids=str,
)
@pytest.mark.slow
def test_no_registers_are_spilled_by_rows_that_once_did(archs, name, dtype, columns):
    command = [sys.executable, "-m", "tests.support.spills", archs, name, dtype, *map(str, columns)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines
    assert [line for line in lines if not line.endswith(" 0")] == []
