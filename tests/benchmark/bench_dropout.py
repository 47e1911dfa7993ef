"""Benchmark of dropout in GB/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import dropout
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(32768, 4096), (32768, 8192), (32768, 11008), (32768, 4000)]


def inputs(M, N, dtype, device):
    return {"x": torch.randn((M, N), dtype=dtype, device=device), "seed": 5}


def bytes_moved(M, N, dtype):
    """The input read once, the result written once."""
    return 2 * M * N * dtype.itemsize


@register_impl("dropout", "torch")
def reference_dropout(
    x: torch.Tensor,
    seed: int,
    p: float = 0.5,
    training: bool = True,
    out: torch.Tensor | None = None,
):
    return torch.nn.functional.dropout(x, p, training)


ALL_BACKENDS = [
    ("cutile", "cuTile", ("orange", "-")) if is_backend_available("cutile") else None,
    ("torch", "PyTorch", ("green", "-")),
]


def get_supported_backends():
    return [backend for backend in ALL_BACKENDS if backend is not None]


def create_benchmark_config(dtype):
    dtype_name = str(dtype).removeprefix("torch.")
    backends, names, styles = zip(*get_supported_backends(), strict=True)
    return triton.testing.Benchmark(
        x_names=["M", "N"],
        x_vals=SIZES,
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="GB/s",
        plot_name=f"dropout-{dtype_name}-GBps",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_dropout(M, N, backend, dtype, device="cuda"):
    kwargs = inputs(M, N, dtype, device)
    fn = functools.partial(dropout, **kwargs, backend=backend)
    ref = functools.partial(reference_dropout, **kwargs)
    # Another generator drops other elements; what both keep is the same
    actual, expected = fn(), ref()
    common = (actual != 0) & (expected != 0)
    torch.testing.assert_close(actual[common], expected[common], rtol=2e-2, atol=0)
    ms = triton.testing.do_bench(fn, return_mode="median")
    return bytes_moved(M, N, dtype) * 1e-6 / ms


if __name__ == "__main__":
    bench_dropout.run(print_data=True)
