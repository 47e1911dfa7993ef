"""Benchmarks begin with sizes that suit the variant: those of images suit neither volumes nor signals."""

import ast

import pytest

from .conftest import rendered

torch = pytest.importorskip("torch")

LEAST_BYTES, MOST_BYTES = 2**23, 2**31  # of inputs and result in bfloat16
VARIANTS = [
    *({"family": "conv", "variant": variant} for variant in ("conv1d", "conv2d", "conv3d")),
    *({"family": "conv_transpose", "variant": f"conv_transpose{rank}d"} for rank in (1, 2, 3)),
    *({"family": "pool", "variant": "max_pool", "rank": rank} for rank in (1, 2, 3)),
]


def functions(text):
    """Sizes and functions of a benchmark, without what it imports and registers."""
    kept = [each for each in ast.parse(text).body if isinstance(each, ast.Assign | ast.FunctionDef)]
    for each in kept:
        if isinstance(each, ast.FunctionDef):
            each.decorator_list = []
    kept = [each for each in kept if ast.unparse(each).startswith(("SIZES", "def inputs", "def reference_"))]
    names = {"torch": torch}
    exec(compile(ast.Module(kept, []), "benchmark", "exec"), names)
    return names


@pytest.mark.parametrize("answers", VARIANTS, ids=str)
def test_inputs_and_results_are_worth_timing_and_fit_into_two_gigabytes(answers):
    files = rendered({"op": "my_op", "layout": "standalone", "backward": False, **answers}).files
    (text,) = (each.content.decode() for each in files if each.path.name == "bench_my_op.py")
    benchmark = functions(text)
    for size in benchmark["SIZES"]:
        kwargs = benchmark["inputs"](*size, torch.bfloat16, "meta")
        result = benchmark["reference_my_op"](**kwargs)
        tensors = [*kwargs.values(), *(result if isinstance(result, tuple) else [result])]
        total = sum(each.nbytes for each in tensors if isinstance(each, torch.Tensor))
        assert LEAST_BYTES <= total <= MOST_BYTES
