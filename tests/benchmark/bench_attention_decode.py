"""Benchmark of attention_decode in GB/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import attention_decode
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(1, 64, 8, 1, 8192, 128), (1, 64, 8, 1, 131072, 128), (8, 64, 8, 1, 32768, 128), (64, 64, 8, 1, 8192, 128)]


def inputs(B, H, HK, M, N, D, dtype, device):
    return {
        "q": torch.randn((B, H, M, D), dtype=dtype, device=device),
        "k": torch.randn((B, HK, N, D), dtype=dtype, device=device),
        "v": torch.randn((B, HK, N, D), dtype=dtype, device=device),
    }


def bytes_moved(B, H, HK, M, N, D, dtype):
    """Keys and values read once, queries read and results written."""
    return 2 * B * (HK * N + H * M) * D * dtype.itemsize


@register_impl("attention_decode", "torch")
def reference_attention_decode(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lengths: torch.Tensor | None = None,
    window: int | None = None,
    softcap: float = 0.0,
    scale: float | None = None,
    out: torch.Tensor | None = None,
):
    m, n = q.shape[2], k.shape[2]
    seen = torch.ones((m, n), dtype=torch.bool, device=q.device).tril(n - m) if m > 1 else None
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, seen, enable_gqa=k.shape[1] < q.shape[1])


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
        x_names=["B", "H", "HK", "M", "N", "D"],
        x_vals=SIZES,
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="GB/s",
        plot_name=f"attention-decode-{dtype_name}-GBps",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_attention_decode(B, H, HK, M, N, D, backend, dtype, device="cuda"):
    kwargs = inputs(B, H, HK, M, N, D, dtype, device)
    fn = functools.partial(attention_decode, **kwargs, backend=backend)
    ref = functools.partial(reference_attention_decode, **kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return bytes_moved(B, H, HK, M, N, D, dtype) * 1e-6 / ms


if __name__ == "__main__":
    bench_attention_decode.run(print_data=True)
