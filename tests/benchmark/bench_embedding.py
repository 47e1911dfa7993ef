"""Benchmark of embedding in GB/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import embedding
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(16384, 4096), (8192, 16384), (65536, 1024), (1048576, 64)]


VOCABULARY = 128256


def inputs(M, N, dtype, device):
    return {
        "weight": torch.randn((VOCABULARY, N), dtype=dtype, device=device),
        "index": torch.randint(0, VOCABULARY, (M,), device=device),
    }


def bytes_moved(M, N, dtype):
    """The rows read and written, once for each index."""
    return 2 * M * N * dtype.itemsize + M * torch.int64.itemsize


@register_impl("embedding", "torch")
def reference_embedding(
    index: torch.Tensor,
    weight: torch.Tensor,
    padding_idx: int | None = None,
    out: torch.Tensor | None = None,
):
    return torch.nn.functional.embedding(index, weight, padding_idx)


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
        plot_name=f"embedding-{dtype_name}-GBps",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_embedding(M, N, backend, dtype, device="cuda"):
    kwargs = inputs(M, N, dtype, device)
    fn = functools.partial(embedding, **kwargs, backend=backend)
    ref = functools.partial(reference_embedding, **kwargs)
    expected = ref()
    # Relative to the largest value, so that zeros never pass for a result that is small throughout
    torch.testing.assert_close(fn(), expected, rtol=2e-2, atol=2e-2 * min(1.0, expected.abs().max().item()))
    ms = triton.testing.do_bench(fn, return_mode="median")
    return bytes_moved(M, N, dtype) * 1e-6 / ms


if __name__ == "__main__":
    bench_embedding.run(print_data=True)
