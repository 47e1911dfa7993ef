"""Benchmark of gemv in GB/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import gemv
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(16384, 8192), (4096, 4096), (8192, 28672), (256, 524288)]


def inputs(M, K, dtype, device):
    scale = K**-0.25  # results are around 1
    return {
        "a": scale * torch.randn((M, K), dtype=dtype, device=device),
        "x": scale * torch.randn(K, dtype=dtype, device=device),
    }


def bytes_moved(M, K, dtype):
    """The matrix and the vector read, the result written."""
    return (M * K + K + M) * dtype.itemsize


@register_impl("gemv", "torch")
def reference_gemv(
    a: torch.Tensor,
    x: torch.Tensor,
    out: torch.Tensor | None = None,
):
    return torch.mv(a, x)


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
        x_names=["M", "K"],
        x_vals=SIZES,
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="GB/s",
        plot_name=f"gemv-{dtype_name}-GBps",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_gemv(M, K, backend, dtype, device="cuda"):
    kwargs = inputs(M, K, dtype, device)
    fn = functools.partial(gemv, **kwargs, backend=backend)
    ref = functools.partial(reference_gemv, **kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return bytes_moved(M, K, dtype) * 1e-6 / ms


if __name__ == "__main__":
    bench_gemv.run(print_data=True)
