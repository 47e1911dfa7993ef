"""Benchmark of bmm in TFLOP/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import bmm
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(2048, 2048, 2048), (1024, 1024, 64), (1000, 1000, 1000), (256, 256, 524288)]


STACK = 32  # matrices


def inputs(M, N, K, dtype, device):
    scale = K**-0.25  # results are around 1
    return {
        "a": scale * torch.randn((STACK, M, K), dtype=dtype, device=device),
        "b": scale * torch.randn((STACK, K, N), dtype=dtype, device=device),
    }


def flops(M, N, K, dtype):
    """A multiplication and an addition for each product."""
    return 2 * STACK * M * N * K


@register_impl("bmm", "torch")
def reference_bmm(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor | None = None,
):
    return torch.matmul(a, b)


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
        x_names=["M", "N", "K"],
        x_vals=SIZES,
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="TFLOP/s",
        plot_name=f"bmm-{dtype_name}-TFLOPS",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_bmm(M, N, K, backend, dtype, device="cuda"):
    kwargs = inputs(M, N, K, dtype, device)
    fn = functools.partial(bmm, **kwargs, backend=backend)
    ref = functools.partial(reference_bmm, **kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return flops(M, N, K, dtype) * 1e-9 / ms


if __name__ == "__main__":
    bench_bmm.run(print_data=True)
