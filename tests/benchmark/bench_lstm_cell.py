"""Benchmark of lstm_cell in TFLOP/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import lstm_cell
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(64, 1024, 1024), (256, 1024, 1024), (1024, 1024, 1024), (256, 2048, 2048), (4096, 2048, 2048)]


def inputs(M, K, N, dtype, device):
    scale = (K + N) ** -0.5  # sums are around 1
    return {
        "x": torch.randn((M, K), dtype=dtype, device=device),
        "h": torch.randn((M, N), dtype=dtype, device=device),
        "c": torch.randn((M, N), dtype=dtype, device=device),
        "w_ih": scale * torch.randn((4 * N, K), dtype=dtype, device=device),
        "w_hh": scale * torch.randn((4 * N, N), dtype=dtype, device=device),
        "b_ih": torch.randn(4 * N, dtype=dtype, device=device),
        "b_hh": torch.randn(4 * N, dtype=dtype, device=device),
    }


def flops(M, K, N, dtype):
    """A multiplication and an addition for each product."""
    return 2 * M * (K + N) * 4 * N


@register_impl("lstm_cell", "torch")
def reference_lstm_cell(
    x: torch.Tensor,
    h: torch.Tensor,
    c: torch.Tensor,
    w_ih: torch.Tensor,
    w_hh: torch.Tensor,
    b_ih: torch.Tensor | None = None,
    b_hh: torch.Tensor | None = None,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
):
    return torch.lstm_cell(x, (h, c), w_ih, w_hh, b_ih, b_hh)


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


def create_benchmark_config(dtype):
    dtype_name = str(dtype).removeprefix("torch.")
    backends, names, styles = zip(*get_supported_backends(), strict=True)
    return triton.testing.Benchmark(
        x_names=["M", "K", "N"],
        x_vals=SIZES,
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="TFLOP/s",
        plot_name=f"lstm-cell-{dtype_name}-TFLOPS",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in DTYPES])
def bench_lstm_cell(M, K, N, backend, dtype, device="cuda"):
    kwargs = inputs(M, K, N, dtype, device)
    fn = functools.partial(lstm_cell, **kwargs, backend=backend)
    ref = functools.partial(reference_lstm_cell, **kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return flops(M, K, N, dtype) * 1e-9 / ms


if __name__ == "__main__":
    bench_lstm_cell.run(print_data=True)
