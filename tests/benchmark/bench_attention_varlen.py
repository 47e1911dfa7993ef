"""Benchmark of attention_varlen in TFLOP/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import attention_varlen
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(4, 32, 32, 4096, 4096, 128), (16, 32, 8, 4096, 4096, 128), (32, 16, 16, 1024, 1024, 64)]
DIRECTIONS = ["forward", "backward"]


def inputs(B, H, HK, M, N, D, dtype, device):
    # B sequences of M / B, 2 * M / B ... and M queries, and likewise of up to N keys
    starts = [(torch.arange(B + 1) * most // B).cumsum(0).int() for most in (M, N)]
    m, n = (int(x[B]) for x in starts)
    return {
        "q": torch.randn((m, H, D), dtype=dtype, device=device),
        "k": torch.randn((n, HK, D), dtype=dtype, device=device),
        "v": torch.randn((n, HK, D), dtype=dtype, device=device),
        "cu_seqlens_q": starts[0].to(device),
        "cu_seqlens_k": starts[1].to(device),
        "max_seqlen_q": M,
        "max_seqlen_k": N,
        "causal": M == N,
    }


def flops(B, H, HK, M, N, D, dtype):
    """Two products over D for each pair of a query and a key that it sees."""
    m, n = (torch.arange(B + 1) * most // B for most in (M, N))
    pairs = m * (m + 1) // 2 if M == N else m * n
    return 4 * H * pairs.sum().item() * D


def flops_backward(B, H, HK, M, N, D, dtype):
    """Five products where there were two."""
    return 2.5 * flops(B, H, HK, M, N, D, dtype)


@register_impl("attention_varlen", "torch")
def reference_attention_varlen(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int | None = None,
    causal: bool = False,
    window: int | None = None,
    softcap: float = 0.0,
    scale: float | None = None,
    out: torch.Tensor | None = None,
):
    """Flash attention, which torch.nn.attention.varlen calls; for fp32 the one of less memory, as flash has none."""
    starts = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    if q.dtype != torch.float32:
        return torch.ops.aten._flash_attention_forward(q, k, v, *starts, 0.0, causal, False)[0]
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    masked = 2 if causal else 0  # from the last query and key on
    return torch.ops.aten._efficient_attention_forward(q[None], k[None], v[None], None, *starts, 0.0, masked)[0][0]


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
        plot_name=f"attention-varlen-{direction}-{dtype_name}-TFLOPS",
        args={"dtype": dtype, "direction": direction},
    )


@triton.testing.perf_report([create_benchmark_config(dtype, direction) for direction in DIRECTIONS for dtype in DTYPES])
def bench_attention_varlen(B, H, HK, M, N, D, backend, dtype, direction, device="cuda"):
    kwargs = inputs(B, H, HK, M, N, D, dtype, device)
    fn = functools.partial(attention_varlen, **kwargs, backend=backend)
    ref = functools.partial(reference_attention_varlen, **kwargs)
    if direction == "backward":
        fn, ref = gradients(fn, kwargs), gradients(ref, kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return (flops_backward if direction == "backward" else flops)(B, H, HK, M, N, D, dtype) * 1e-9 / ms


if __name__ == "__main__":
    bench_attention_varlen.run(print_data=True)
