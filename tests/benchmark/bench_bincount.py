"""Benchmark of bincount in GB/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import bincount
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.int32, torch.int64]
SIZES = [(134217728, 16), (134217728, 128), (134217728, 256), (134217728, 4096), (134217728, 128256)]


def inputs(N, BINS, dtype, device):
    return {"x": torch.randint(0, BINS, (N,), dtype=dtype, device=device), "minlength": BINS}


def bytes_moved(N, BINS, dtype):
    """The input read once, the counts written once."""
    return N * dtype.itemsize + BINS * torch.int64.itemsize


@register_impl("bincount", "torch")
def reference_bincount(
    x: torch.Tensor,
    minlength: int = 0,
    bins: int | None = None,
    out: torch.Tensor | None = None,
):
    return torch.bincount(x, minlength=minlength)


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
        plot_name=f"bincount-{dtype_name}-GBps",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_bincount(N, BINS, backend, dtype, device="cuda"):
    kwargs = inputs(N, BINS, dtype, device)
    fn = functools.partial(bincount, **kwargs, backend=backend)
    ref = functools.partial(reference_bincount, **kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return bytes_moved(N, BINS, dtype) * 1e-6 / ms


if __name__ == "__main__":
    bench_bincount.run(print_data=True)
