"""Benchmark of add_rms_norm in GB/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import add_rms_norm
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(32768, 4096), (32768, 8192), (32768, 11008), (32768, 4000)]


def inputs(M, N, dtype, device):
    return {
        "x": torch.randn((M, N), dtype=dtype, device=device),
        "residual": torch.randn((M, N), dtype=dtype, device=device),
        "weight": torch.randn(N, dtype=dtype, device=device),
    }


def bytes_moved(M, N, dtype):
    """The rows read once, the results written once; the weight is small beside them."""
    return 4 * M * N * dtype.itemsize


@register_impl("add_rms_norm", "torch")
def reference_add_rms_norm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-6,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
):
    x = x + residual
    y = torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)
    return y if bias is None else y + bias, x


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
        plot_name=f"add-rms-norm-{dtype_name}-GBps",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_add_rms_norm(M, N, backend, dtype, device="cuda"):
    kwargs = inputs(M, N, dtype, device)
    fn = functools.partial(add_rms_norm, **kwargs, backend=backend)
    ref = functools.partial(reference_add_rms_norm, **kwargs)
    expected = ref()
    # Relative to the largest value, so that zeros never pass for a result that is small throughout
    torch.testing.assert_close(
        fn(), expected, rtol=2e-2, atol=2e-2 * min(1.0, torch.stack(expected).abs().max().item())
    )
    ms = triton.testing.do_bench(fn, return_mode="median")
    return bytes_moved(M, N, dtype) * 1e-6 / ms


if __name__ == "__main__":
    bench_add_rms_norm.run(print_data=True)
