"""A benchmark that the examples of rules about benchmarks start from."""

BENCHMARK = """
import torch
import triton
import triton.testing

from my_ops import my_op
from my_ops.backend import is_backend_available
from my_ops.backend import register_impl


@register_impl("my_op", "torch")
def reference_my_op(x, w):
    return x * w


ALL_BACKENDS = [
    ("cutile", "cuTile", ("orange", "-")) if is_backend_available("cutile") else None,
    ("torch", "PyTorch", ("green", "-")),
]


def get_supported_backends():
    return [backend for backend in ALL_BACKENDS if backend is not None]


def create_benchmark_config(dtype):
    backends, names, styles = zip(*get_supported_backends(), strict=True)
    return triton.testing.Benchmark(
        x_names=["N"],
        x_vals=[1024, 11008],
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="GB/s",
        plot_name=f"my-op-{dtype}-GBps",
        args={"dtype": dtype},
    )


@triton.testing.perf_report([create_benchmark_config(torch.float16)])
def bench_my_op(N, backend, dtype, device="cuda"):
    x = torch.randn((4096, N), dtype=dtype, device=device)
    w = torch.randn((4096, N), dtype=dtype, device=device)
    fn = lambda: my_op(x, w, backend=backend)
    ref = lambda: reference_my_op(x, w)
    torch.testing.assert_close(fn(), ref(), rtol=1e-2, atol=1e-2)
    ms = triton.testing.do_bench(fn)
    total = x.numel() * x.element_size() * 2 + w.numel() * w.element_size()
    return total * 1e-6 / ms


if __name__ == "__main__":
    bench_my_op.run(print_data=True)
"""
