"""Benchmark of layer_norm in GB/s, beside PyTorch."""

import functools

import torch
import triton
import triton.testing

from reference_ops import layer_norm
from reference_ops.backend import is_backend_available
from reference_ops.backend import register_impl

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = [(32768, 4096), (32768, 8192), (32768, 11008), (32768, 4000)]
DIRECTIONS = ["forward", "backward"]


def inputs(M, N, dtype, device):
    return {
        "x": torch.randn((M, N), dtype=dtype, device=device),
        "weight": torch.randn(N, dtype=dtype, device=device),
        "bias": torch.randn(N, dtype=dtype, device=device),
    }


def bytes_moved(M, N, dtype):
    """The rows read once, the result written once; the weight is small beside them."""
    return 2 * M * N * dtype.itemsize


def bytes_moved_backward(M, N, dtype):
    """The rows and the gradient of the result read once, the gradient of the rows written once."""
    return 3 * M * N * dtype.itemsize


@register_impl("layer_norm", "torch")
def reference_layer_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    out: torch.Tensor | None = None,
):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def gradients(fn, kwargs):
    """Return a function that computes the gradients of what `fn` returns."""
    trained = [x.requires_grad_() for name, x in kwargs.items() if name in ("x", "weight", "bias")]
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
        x_names=["M", "N"],
        x_vals=SIZES,
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="GB/s",
        plot_name=f"layer-norm-{direction}-{dtype_name}-GBps",
        args={"dtype": dtype, "direction": direction},
    )


@triton.testing.perf_report([create_benchmark_config(dtype, direction) for direction in DIRECTIONS for dtype in DTYPES])
def bench_layer_norm(M, N, backend, dtype, direction, device="cuda"):
    kwargs = inputs(M, N, dtype, device)
    fn = functools.partial(layer_norm, **kwargs, backend=backend)
    ref = functools.partial(reference_layer_norm, **kwargs)
    if direction == "backward":
        fn, ref = gradients(fn, kwargs), gradients(ref, kwargs)
    check(fn(), ref())
    ms = triton.testing.do_bench(fn, return_mode="median")
    return (bytes_moved_backward if direction == "backward" else bytes_moved)(M, N, dtype) * 1e-6 / ms


if __name__ == "__main__":
    bench_layer_norm.run(print_data=True)
