"""Benchmark of scaled_matmul in TFLOP/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import scaled_matmul
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.float8_e4m3fn]
SIZES = [
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (8192, 28672, 4096),
    (4000, 4000, 4000),
    (128, 8192, 8192),
    (64, 7168, 18432),
]


def inputs(M, N, K, dtype, device):
    def quantized(rows, dtype):
        """Rows of random numbers, divided by a unit each."""
        x = K**-0.25 * torch.randn((rows, K), device=device)  # results are around 1
        unit = x.abs().amax(1, keepdim=True) / torch.finfo(dtype).max
        return (x / unit).to(dtype), unit

    a, scale_a = quantized(M, dtype)
    b, scale_b = quantized(N, dtype)
    return {
        "a": a,
        "b": b.mT,
        "scale_a": scale_a,
        "scale_b": scale_b.mT,
    }


def flops(M, N, K, dtype):
    """A multiplication and an addition for each product."""
    return 2 * M * N * K


@register_impl("scaled_matmul", "torch")
def reference_scaled_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    out_dtype: torch.dtype = torch.bfloat16,
    out: torch.Tensor | None = None,
):
    return torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=out_dtype)


def check(actual, expected):
    """Compare floats up to 2 % of them, or 4 % of their root mean square; one in 10^4 but zeros may be farther off."""
    if not expected.is_floating_point():
        torch.testing.assert_close(actual, expected)
        return
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    size = expected.double().norm().item() / max(1, expected.numel()) ** 0.5
    close = torch.isclose(actual, expected, rtol=2e-2, atol=4e-2 * size)
    wrong = close.numel() - int(close.sum())
    # Cancellation spoils some; of gradients that are zero nearly everywhere those of the others have to be right
    assert wrong <= int(expected.count_nonzero()) // 10**4, f"{wrong} of {close.numel()} elements are wrong"


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
        x_names=["M", "N", "K"],
        x_vals=SIZES,
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="TFLOP/s",
        plot_name=f"scaled-matmul-{dtype_name}-TFLOPS",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_scaled_matmul(M, N, K, backend, dtype, device="cuda"):
    kwargs = inputs(M, N, K, dtype, device)
    fn = functools.partial(scaled_matmul, **kwargs, backend=backend)
    ref = functools.partial(reference_scaled_matmul, **kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return flops(M, N, K, dtype) * 1e-9 / ms


if __name__ == "__main__":
    bench_scaled_matmul.run(print_data=True)
