"""Benchmark of add_scaled in GB/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import add_scaled
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(32768, 4096), (32768, 8192), (32768, 11008), (32768, 4000)]


def inputs(M, N, dtype, device):
    return {
        "x": torch.randn((M, N), dtype=dtype, device=device),
        "y": torch.randn((M, N), dtype=dtype, device=device),
        "z": torch.randn((M, N), dtype=dtype, device=device),
    }


def bytes_moved(M, N, dtype):
    """Every input read once, the result written once."""
    return 4 * M * N * dtype.itemsize


@register_impl("add_scaled", "torch")
def reference_add_scaled(
    x: torch.Tensor,
    y: torch.Tensor,
    z: torch.Tensor,
    alpha: float = 1.0,
    out: torch.Tensor | None = None,
):
    return x + alpha * y * z


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
        x_names=["M", "N"],
        x_vals=SIZES,
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="GB/s",
        plot_name=f"add-scaled-{dtype_name}-GBps",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_add_scaled(M, N, backend, dtype, device="cuda"):
    kwargs = inputs(M, N, dtype, device)
    fn = functools.partial(add_scaled, **kwargs, backend=backend)
    ref = functools.partial(reference_add_scaled, **kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return bytes_moved(M, N, dtype) * 1e-6 / ms


if __name__ == "__main__":
    bench_add_scaled.run(print_data=True)
