"""Benchmark of quantize_int8 in GB/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import quantize_int8
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(32768, 4096), (32768, 8192), (32768, 11008), (32768, 4000)]


def inputs(M, N, dtype, device):
    return {"x": torch.randn((M, N), dtype=dtype, device=device)}


def bytes_moved(M, N, dtype):
    """The input read once, a byte written for each of its elements, and a scale for each row."""
    return M * N * (dtype.itemsize + 1) + M * 4


@register_impl("quantize_int8", "torch")
def reference_quantize_int8(
    x: torch.Tensor,
    block: tuple[int, int] | None = None,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
):
    x = x.float()
    scale = (x.abs().amax(-1, keepdim=True) * (1 / 127)).clamp(min=2**-126)
    return (x * scale.reciprocal()).round().to(torch.int8), scale


def check(actual, expected):
    """Compare scales, and values up to the next integer, as a division may round otherwise."""
    (values, scale), (expected_values, expected_scale) = actual, expected
    torch.testing.assert_close(scale, expected_scale, rtol=1e-5, atol=0)
    torch.testing.assert_close(values.float(), expected_values.float(), rtol=0, atol=1)


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
        plot_name=f"quantize-int8-{dtype_name}-GBps",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_quantize_int8(M, N, backend, dtype, device="cuda"):
    kwargs = inputs(M, N, dtype, device)
    fn = functools.partial(quantize_int8, **kwargs, backend=backend)
    ref = functools.partial(reference_quantize_int8, **kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return bytes_moved(M, N, dtype) * 1e-6 / ms


if __name__ == "__main__":
    bench_quantize_int8.run(print_data=True)
