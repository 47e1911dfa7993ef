"""Kernels of operators that once spilled registers on an architecture where none should, with inputs of any kind."""

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


# Shapes that the operator's own tests, of which `compile` takes its inputs, leave out; `StandIn` changes torch for good
SPILLED_BY_ROWS = """
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
import cuda.tile as ct
import torch
from tilewright.aot.capture import Recorder, capture, load
from tilewright.aot.cubin import read_resources
from tilewright.aot.standin import StandIn
from tilewright.aot.worker import export_cubin
from tilewright.config import find_host
from tilewright.cutile.targets import select
from tilewright.verify.operators import choose, find_operators

archs, name, dtype, *columns = sys.argv[1:]
host = find_host(Path.cwd())
(operator,) = choose(find_operators(host), [name], host)
recorder, gpu = Recorder(), StandIn(select(archs)[0])
ct.launch = recorder.launch
gpu.install()
subject = load(
    paths=[str(path) for path in operator.import_paths],
    package=host.operators_module,
    stub=operator.module(operator.stub),
    name=operator.function,
    kernel=operator.module(operator.kernel),
    test=operator.module(operator.test),
)
aligned, ragged = ([(64, int(n))] for n in columns)
cases = SimpleNamespace(_aligned=aligned, _ragged=ragged, inputs=subject.cases.inputs)
subject = replace(subject, cases=cases, kernels=frozenset())  # no further shape is tried
for gpu.target in select(archs):
    for launch in capture(subject, recorder, getattr(torch, dtype)):
        cubin = export_cubin(launch.kernel, launch.signature, gpu.target, 60)
        print(gpu.target.name, launch.name, read_resources(cubin)[launch.signature.symbol].spilled_bytes)
"""


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
def test_no_registers_are_spilled_by_rows_of(archs, name, dtype, columns):
    command = [sys.executable, "-c", SPILLED_BY_ROWS, archs, name, dtype, *map(str, columns)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines
    assert [line for line in lines if not line.endswith(" 0")] == []
