"""Bandwidth of scale_add beside PyTorch."""

import torch
import triton

import tiny_ops


def bench(n, provider):
    x = torch.randn(n, device="cuda")
    functions = {"cutile": lambda: tiny_ops.scale_add(x, x), "torch": lambda: torch.add(x, x)}
    torch.testing.assert_close(functions[provider](), functions["torch"]())
    return 3 * x.nbytes / triton.testing.do_bench(functions[provider]) * 1e-6


report = triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["n"],
        x_vals=[1 << 20, 1 << 24],
        line_arg="provider",
        line_vals=["cutile", "torch"],
        line_names=["CuTile", "PyTorch"],
        plot_name="scale_add-GBps",
        args={},
    )
)(bench)


if __name__ == "__main__":
    report.run(print_data=True)
