"""Benchmark of avg_pool2d in GB/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import avg_pool2d
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(32, 64, 512, 512), (64, 256, 56, 56), (64, 192, 71, 73)]


def inputs(N, C, H, W, dtype, device):
    x = torch.randn((N, C, H, W), dtype=dtype, device=device)
    return {"x": x, "kernel_size": 3, "stride": 2, "padding": 1}


def bytes_moved(N, C, H, W, dtype):
    """The input read once, the result written once."""
    results = N * C * ((H + 1) // 2) * ((W + 1) // 2)
    return N * C * H * W * dtype.itemsize + results * dtype.itemsize


@register_impl("avg_pool2d", "torch")
def reference_avg_pool2d(
    x: torch.Tensor,
    kernel_size: int | tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    out: torch.Tensor | None = None,
):
    return torch.nn.functional.avg_pool2d(x, kernel_size, stride, padding, ceil_mode, count_include_pad)


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
        x_names=["N", "C", "H", "W"],
        x_vals=SIZES,
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="GB/s",
        plot_name=f"avg-pool2d-{dtype_name}-GBps",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_avg_pool2d(N, C, H, W, backend, dtype, device="cuda"):
    kwargs = inputs(N, C, H, W, dtype, device)
    fn = functools.partial(avg_pool2d, **kwargs, backend=backend)
    ref = functools.partial(reference_avg_pool2d, **kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return bytes_moved(N, C, H, W, dtype) * 1e-6 / ms


if __name__ == "__main__":
    bench_avg_pool2d.run(print_data=True)
