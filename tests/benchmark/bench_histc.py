"""Benchmark of histc in GB/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import histc
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(134217728, 16), (134217728, 100), (134217728, 256), (134217728, 4096), (134217000, 100)]


def inputs(N, BINS, dtype, device):
    return {"x": torch.randn(N, dtype=dtype, device=device), "bins": BINS, "min": -4, "max": 4}


def bytes_moved(N, BINS, dtype):
    """The input read once, the counts written once."""
    return N * dtype.itemsize + BINS * max(dtype.itemsize, 4)


@register_impl("histc", "torch")
def reference_histc(
    x: torch.Tensor,
    bins: int = 100,
    min: float = 0,
    max: float = 0,
    out: torch.Tensor | None = None,
):
    return torch.histc(x.float() if x.element_size() == 2 else x, bins, min, max)


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
        x_names=["N", "BINS"],
        x_vals=SIZES,
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="GB/s",
        plot_name=f"histc-{dtype_name}-GBps",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_histc(N, BINS, backend, dtype, device="cuda"):
    kwargs = inputs(N, BINS, dtype, device)
    fn = functools.partial(histc, **kwargs, backend=backend)
    ref = functools.partial(reference_histc, **kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return bytes_moved(N, BINS, dtype) * 1e-6 / ms


if __name__ == "__main__":
    bench_histc.run(print_data=True)
