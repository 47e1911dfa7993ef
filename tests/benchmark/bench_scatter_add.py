"""Benchmark of scatter_add in GB/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import scatter_add
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(16384, 4096), (8192, 16384), (65536, 1024), (1048576, 64)]


def inputs(M, N, dtype, device):
    return {
        "x": torch.randn((M, N), dtype=dtype, device=device),
        "src": torch.randn((M, N), dtype=dtype, device=device),
        "index": torch.randint(0, M, (M,), device=device),
        "dim": 0,
    }


def bytes_moved(M, N, dtype):
    """The input, the rows to add and their indices read once, the result written once."""
    return 3 * M * N * dtype.itemsize + M * torch.int64.itemsize


@register_impl("scatter_add", "torch")
def reference_scatter_add(
    x: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    src: torch.Tensor,
    out: torch.Tensor | None = None,
):
    return torch.index_add(x, dim, index, src)


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
        plot_name=f"scatter-add-{dtype_name}-GBps",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_scatter_add(M, N, backend, dtype, device="cuda"):
    kwargs = inputs(M, N, dtype, device)
    fn = functools.partial(scatter_add, **kwargs, backend=backend)
    ref = functools.partial(reference_scatter_add, **kwargs)
    expected = ref()
    # Relative to the largest value, so that zeros never pass for a result that is small throughout
    torch.testing.assert_close(fn(), expected, rtol=2e-2, atol=2e-2 * min(1.0, expected.abs().max().item()))
    ms = triton.testing.do_bench(fn, return_mode="median")
    return bytes_moved(M, N, dtype) * 1e-6 / ms


if __name__ == "__main__":
    bench_scatter_add.run(print_data=True)
