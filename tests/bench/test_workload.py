"""The benchmarks of the template say what `tilewright bench` has to know."""

from pathlib import Path

import pytest
import torch
from torch.utils._pytree import tree_leaves

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
