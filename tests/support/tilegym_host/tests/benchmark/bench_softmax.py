# SPDX-FileCopyrightText: Copyright (c) 2025 NVIDIA CORPORATION & AFFILIATES. All rights reserved.
#
# SPDX-License-Identifier: MIT

import torch
import triton
import triton.testing

import tilegym
from tilegym.backend import is_backend_available
from tilegym.backend import register_impl


def reference_softmax(x, use_tma=False, **kwargs):
    return torch.softmax(x, dim=-1)


register_impl("softmax", "torch")(reference_softmax)

ALL_BACKENDS = [
    ("cutile", "CuTile", ("blue", "-")) if is_backend_available("cutile") else None,
    ("torch", "PyTorch", ("green", "-")),
]


def get_supported_backends():
    return [backend for backend in ALL_BACKENDS if backend is not None]


def create_benchmark_config(dtype):
    backends, names, styles = zip(*get_supported_backends())
    return triton.testing.Benchmark(
        x_names=["N"],
        x_vals=[2**i for i in range(10, 15)],
        line_arg="backend",
        line_vals=list(backends),
        line_names=list(names),
        styles=list(styles),
        ylabel="GB/s",
        plot_name=f"softmax-{str(dtype).split('.')[-1]}-GBps",
        args={"dtype": dtype, "M": 4096},
    )


@triton.testing.perf_report([create_benchmark_config(dtype) for dtype in [torch.float16, torch.float32]])
def bench_softmax(N, backend, dtype, M, device="cuda"):
    x = torch.randn(M, N, dtype=dtype, device=device)
    fn = lambda: tilegym.ops.softmax(x, backend=backend)
    torch.testing.assert_close(fn(), reference_softmax(x), rtol=1e-2, atol=1e-2)
    ms = triton.testing.do_bench_cudagraph(fn)
    return 2 * x.numel() * x.element_size() * 1e-6 / ms


if __name__ == "__main__":
    bench_softmax.run(print_data=True)
