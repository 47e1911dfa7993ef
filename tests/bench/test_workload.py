"""The benchmarks of the template say what `tilewright bench` has to know."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils._pytree import tree_leaves

from tilewright.bench.workload import Workload
from tilewright.bench.workload import load

BENCHMARKS = sorted(path.stem for path in Path(__file__).parents[1].glob("benchmark/bench_*.py"))


@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmarks_of_the_reference_operators(name):
    function = name.removeprefix("bench_")
    workload = load(
        name=function,
        function=function,
        package="reference_ops",
        backend="reference_ops.backend",
        benchmark=f"tests.benchmark.{name}",
        peers="tests.benchmark.peers",
    )
    assert {"cutile", "torch"} <= set(workload.backends)
    for problem, dtype in workload.problems():
        assert problem.work > 0
        assert list(problem.size) == list(workload.names)
        kwargs = workload.inputs(*problem.size.values(), dtype, "meta")
        assert any(isinstance(value, torch.Tensor) for value in tree_leaves(kwargs))  # also in lists


def test_torch_compile_compiles_every_shape_once(monkeypatch):
    """Also the ninth, which by default it runs as it is."""
    graphs, compile_ = [], torch.compile

    def backend(graph, inputs):
        graphs.append([tuple(tensor.shape) for tensor in inputs])
        return graph.forward

    def double(x):
        return x * 2

    monkeypatch.setattr(torch, "compile", lambda function, **options: compile_(function, backend=backend, **options))
    workload = Workload(
        name="double",
        function=double,
        backends=[],
        reference=double,
        inputs=lambda n, dtype, device: {"x": torch.ones(n, dtype=dtype, device=device)},
        names=("n",),
        sizes=[(n,) for n in range(2, 14)],
        dtypes=[torch.float32],
        unit="GB/s",
        work=lambda n, dtype: 8 * n,
    )
    for _ in range(2):
        for (n,) in workload.sizes:
            call = workload.contestants(["compile"], workload.inputs(n, torch.float32, "cpu"))["compile"]
            torch.testing.assert_close(call(), torch.full((n,), 2.0))
    assert graphs == [[size] for size in workload.sizes]


def test_what_torch_compiled_can_be_computed_again_in_a_process_that_has_compiled_nothing(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "from tilewright.bench.workload import _compiled\n"
        "_compiled(torch.sin)\n"
        "assert torch._functorch.config.donated_buffer is False\n"
    )
    subprocess.run([sys.executable, script], check=True)
