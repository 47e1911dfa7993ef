"""Benchmark of conv2d in TFLOP/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import conv2d
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [
    (32, 128, 64, 256, 3, 1, 1),
    (32, 64, 56, 64, 3, 1, 1),
    (64, 3, 224, 64, 7, 2, 1),
    (32, 256, 56, 256, 3, 1, 256),
]


def inputs(N, C, size, K, kernel, stride, groups, dtype, device):
    x = torch.randn((N, C, *(size,) * 2), dtype=dtype, device=device)
    weight = torch.randn((K, C // groups, *(kernel,) * 2), dtype=dtype, device=device)
    weight *= (C // groups * kernel**2) ** -0.5  # results are around 1
    return {
        "x": x.to(memory_format=torch.channels_last),
        "weight": weight.to(memory_format=torch.channels_last),
        "stride": stride,
        "padding": kernel // 2,
        "groups": groups,
    }


def _out_size(size, kernel, stride):
    return (size + 2 * (kernel // 2) - kernel) // stride + 1


def flops(N, C, size, K, kernel, stride, groups, dtype):
    """A multiplication and an addition for each product."""
    return 2 * N * K * _out_size(size, kernel, stride) ** 2 * C // groups * kernel**2


@register_impl("conv2d", "torch")
def reference_conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] | str = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
    out: torch.Tensor | None = None,
):
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=False):
        return torch.nn.functional.conv2d(x, weight, None, stride, padding, dilation, groups)


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
        x_names=["N", "C", "size", "K", "kernel", "stride", "groups"],
        x_vals=SIZES,
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="TFLOP/s",
        plot_name=f"conv2d-{dtype_name}-TFLOPS",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_conv2d(N, C, size, K, kernel, stride, groups, backend, dtype, device="cuda"):
    kwargs = inputs(N, C, size, K, kernel, stride, groups, dtype, device)
    fn = functools.partial(conv2d, **kwargs, backend=backend)
    ref = functools.partial(reference_conv2d, **kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return flops(N, C, size, K, kernel, stride, groups, dtype) * 1e-9 / ms


if __name__ == "__main__":
    bench_conv2d.run(print_data=True)
