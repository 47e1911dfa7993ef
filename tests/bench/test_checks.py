"""The checks of the benchmarks: the operators pass them, with small sizes in the interpreter; zeros do not."""

from functools import partial
from pathlib import Path

import pytest
import torch

from tests.bench.test_workload import BENCHMARKS
from tilewright import interpret
from tilewright.bench.run import has_gradients
from tilewright.bench.workload import load
from tilewright.config import find_host
from tilewright.verify.operators import find_operators

ROWS = (5, 40)
PRODUCT = (24, 40, 32)
SIZES = {
    "attention": (1, 2, 2, 9, 9, 16),
    "attention_decode": (1, 4, 2, 1, 40, 16),
    "avg_pool2d": (1, 2, 8, 9),
    "batch_norm": (2, 8, 3, 5),
    "bincount": (200, 16),
    "conv2d": (1, 8, 6, 8, 3, 1, 1),
    "conv_transpose2d": (1, 8, 4, 8, 4, 2, 1),
    "group_norm": (2, 16, 3, 5),
    "grouped_matmul": (40, 4, 24, 16),
    "gru_cell": (4, 16, 16),
    "histc": (200, 16),
    "linear_cross_entropy": (8, 40, 32),
    "lstm_cell": (4, 16, 16),
    "max_pool2d": (1, 2, 8, 9),
    "rope": (1, 2, 5, 16),
    "scaled_matmul": (128, 128, 128),
    "topk": (5, 64, 8),
}
GEMM = ("matmul", "bmm", "linear_gelu")


def workload(name, *, backward=False):
    return load(
        name=name,
        function=name,
        package="reference_ops",
        backend="reference_ops.backend",
        benchmark=f"tests.benchmark.bench_{name}",
        peers="tests.benchmark.peers",
        backward=backward,
    )


def results(work, size):
    """What the operator and the reference compute on inputs of a size."""
    with interpret.enabled():
        torch.manual_seed(0)
        kwargs = work.inputs(*size, work.dtypes[0], "cuda")
        calls = (partial(work.function, **kwargs, backend="cutile"), partial(work.reference, **kwargs))
        return [work.timed(call, kwargs)() for call in calls]


def size_of(name):
    return SIZES.get(name, PRODUCT if name in GEMM else ROWS)


def zeros(result):
    return torch.zeros_like(result) if isinstance(result, torch.Tensor) else type(result)(map(zeros, result))


ONLY_ON_GPU = ("attention_varlen",)  # PyTorch's own
NAMES = [name for bench in BENCHMARKS if (name := bench.removeprefix("bench_")) not in ONLY_ON_GPU]
TRAINED = [
    each.name for each in find_operators(find_host(Path(__file__))) if has_gradients(each) and each.name in NAMES
]


@pytest.mark.parametrize("name", NAMES)
def test_result_passes_and_zeros_do_not(name):
    work = workload(name)
    found, expected = results(work, size_of(name))
    work.check(found, expected)
    with pytest.raises(AssertionError):
        work.check(zeros(found), expected)


@pytest.mark.parametrize("name", TRAINED)
def test_gradients_pass_and_zeros_do_not(name):
    work = workload(name, backward=True)
    assert all(problem.backward and problem.work > 0 for problem, _ in work.problems())
    found, expected = results(work, size_of(name))
    work.check(found, expected)
    with pytest.raises(AssertionError):
        work.check(zeros(found), expected)


def test_gradients_are_computed_each_time():
    work = workload("softmax", backward=True)
    with interpret.enabled():
        kwargs = work.inputs(3, 8, torch.float32, "cuda")
        call = work.timed(partial(work.function, **kwargs, backend="cutile"), kwargs)
        first, second = call(), call()
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_few_elements_may_lose_digits_by_cancellation():
    work, expected = workload("rms_norm"), torch.randn(400, 1000)
    spoilt, wrong = expected.clone(), expected.clone()
    spoilt[0, :4] += 0.1
    wrong[0] += 0.1
    work.check(spoilt, expected)
    with pytest.raises(AssertionError, match=r"\d+ of 400000 elements are wrong"):
        work.check(wrong, expected)
