"""Benchmark of attention in TFLOP/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import attention
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [
    (4, 32, 32, 4096, 4096, 128),
    (2, 32, 8, 8192, 8192, 128),
    (8, 16, 16, 2048, 2048, 64),
    (8, 16, 16, 2048, 4096, 64),
]
DIRECTIONS = ["forward", "backward"]


def inputs(B, H, HK, M, N, D, dtype, device):
    return {
        "q": torch.randn((B, H, M, D), dtype=dtype, device=device),
        "k": torch.randn((B, HK, N, D), dtype=dtype, device=device),
        "v": torch.randn((B, HK, N, D), dtype=dtype, device=device),
        "causal": M == N,
    }


def flops(B, H, HK, M, N, D, dtype):
    """Two products over D for each pair of a query and a key that it sees."""
    pairs = M * (M + 1) // 2 if M == N else M * N
    return 4 * B * H * pairs * D


def flops_backward(B, H, HK, M, N, D, dtype):
    """Five products where there were two."""
    return 2.5 * flops(B, H, HK, M, N, D, dtype)


@register_impl("attention", "torch")
def reference_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    window: int | None = None,
    softcap: float = 0.0,
    scale: float | None = None,
    out: torch.Tensor | None = None,
):
    grouped = k.shape[1] < q.shape[1]
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)


def gradients(fn, kwargs):
    """Return a function that computes the gradients of what `fn` returns."""
    trained = [x.requires_grad_() for name, x in kwargs.items() if name in ("q", "k", "v")]
    y = fn()
    torch.manual_seed(1)  # not that of the inputs
    upstream = torch.randn_like(y)
    return functools.partial(torch.autograd.grad, y, trained, upstream, retain_graph=True)


def check(actual, expected):
    """Compare floats up to 2 % of them, or 4 % of their root mean square; one in 10^4 but zeros may be farther off."""
    if not isinstance(expected, torch.Tensor):
        for results in zip(actual, expected, strict=True):
            check(*results)
        return
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


def create_benchmark_config(dtype, direction):
    dtype_name = str(dtype).removeprefix("torch.")
    backends, names, styles = zip(*get_supported_backends(), strict=True)
    return triton.testing.Benchmark(
        x_names=["B", "H", "HK", "M", "N", "D"],
        x_vals=SIZES,
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="TFLOP/s",
        plot_name=f"attention-{direction}-{dtype_name}-TFLOPS",
        args={"dtype": dtype, "direction": direction},
    )


@triton.testing.perf_report([create_benchmark_config(dtype, direction) for direction in DIRECTIONS for dtype in DTYPES])
def bench_attention(B, H, HK, M, N, D, backend, dtype, direction, device="cuda"):
    kwargs = inputs(B, H, HK, M, N, D, dtype, device)
    fn = functools.partial(attention, **kwargs, backend=backend)
    ref = functools.partial(reference_attention, **kwargs)
    if direction == "backward":
        fn, ref = gradients(fn, kwargs), gradients(ref, kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return (flops_backward if direction == "backward" else flops)(B, H, HK, M, N, D, dtype) * 1e-9 / ms


if __name__ == "__main__":
    bench_attention.run(print_data=True)
