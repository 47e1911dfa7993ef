"""Time the reference operators beside PyTorch, torch.compile and TileGym, in one process.

Run on a machine with a GPU, from the root of the repository:

    PYTHONPATH=. python benchmarks/peers.py [--json FILE] [OP...]

Every contestant is compared with PyTorch before it is timed. A rate is the work of the problem over the median time of
`triton.testing.do_bench`: GB/s of the bytes that must move, or TFLOP/s. The limits, a copy on the device and torch's
bf16 matrix product, are measured in the same run, before and after.
"""

import argparse
import datetime
import importlib.metadata
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field

import torch
import torch.nn.functional as F
import triton.testing

import reference_ops as ops

BF16 = torch.bfloat16
ROWS = [(65536, 4096), (65536, 8192), (65536, 11008), (65536, 4000)]
# For operators that write next to nothing.
READ_ONCE = [(131072, 4096), (131072, 8192), (131072, 11008), (131072, 4000)]
PRODUCTS = [(4096, 4096, 4096), (8192, 8192, 8192), (8192, 28672, 4096), (4000, 4000, 4000), (128, 8192, 8192)]
Call = Callable[..., torch.Tensor]


@dataclass(frozen=True)
class Workload:
    """One operator: its inputs for a shape, the work of a call, and who else can do it."""

    op: Call
    shapes: list[tuple[int, ...]]
    inputs: Callable[..., tuple[torch.Tensor, ...]]
    work: Callable[..., float]  # bytes for GB/s, floating-point operations for TFLOP/s
    torch: Call
    tilegym: dict[str, Call] = field(default_factory=dict)
    unit: str = "GB/s"


def randn(*shape: int) -> torch.Tensor:
    """Normal bf16 numbers on the GPU."""
    return torch.randn(shape, dtype=BF16, device="cuda")


def tilegym_peers() -> dict[str, dict[str, Call]]:
    """TileGym's own operators and their alternatives, where it is installed."""
    try:
        import tilegym
        from tilegym.ops.activation import gelu
    except ImportError:
        return {}
    tilegym.set_backend("cutile")
    g = tilegym.ops
    return {
        "gelu": {"tilegym": lambda x: gelu(x), "tilegym tanh": lambda x: gelu(x, approximate="tanh")},
        "silu_and_mul": {"tilegym": g.silu_and_mul},
        "swiglu": {"tilegym": lambda gate, up: g.get_swiglu()(gate, up)},
        "softmax": {
            "tilegym": g.softmax,
            "tilegym tma": lambda x: g.softmax(x, use_tma=True),
            "tilegym multi_wave": lambda x: g.softmax(x, use_multi_wave=True),
        },
        "rms_norm": {"tilegym": lambda x, w: g.rms_norm(x, (x.shape[-1],), w, 1e-6)},
        "layer_norm": {
            "tilegym": lambda x, w, b: g.layer_norm(x, x.ndim - 1, x.ndim, w, b, 1e-5),
            "tilegym legacy": lambda x, w, b: g.layer_norm_legacy(x, (x.shape[-1],), w, b, 1e-5),
        },
        "matmul": {"tilegym": g.matmul},
    }


def workloads() -> dict[str, Workload]:
    """The reference operators, by name."""
    peers = tilegym_peers()

    def rows(count: int) -> Callable[..., float]:
        return lambda m, n: count * m * n * 2

    def both(m: int, n: int) -> tuple[torch.Tensor, ...]:
        return randn(m, n), randn(m, n)

    one = lambda m, n: (randn(m, n),)
    flops = lambda m, n, k: 2 * m * n * k
    table = {
        "gelu": Workload(ops.gelu, ROWS, one, rows(2), F.gelu),
        "add_scaled": Workload(
            ops.add_scaled, ROWS, lambda m, n: (*both(m, n), randn(m, n)), rows(4), lambda x, y, z: x + 1.0 * y * z
        ),
        "silu_and_mul": Workload(
            ops.silu_and_mul,
            ROWS,
            lambda m, n: (randn(m, 2 * n),),
            rows(3),
            lambda x: F.silu(x[..., : x.shape[-1] // 2]) * x[..., x.shape[-1] // 2 :],
        ),
        "swiglu": Workload(ops.swiglu, ROWS, both, rows(3), lambda gate, up: F.silu(gate) * up),
        "row_sum": Workload(lambda x: ops.row_sum(x, dim=-1), READ_ONCE, one, rows(1), lambda x: x.sum(-1)),
        "argmax": Workload(lambda x: ops.argmax(x, dim=-1), READ_ONCE, one, rows(1), lambda x: x.argmax(-1)),
        "softmax": Workload(ops.softmax, ROWS, one, rows(2), lambda x: F.softmax(x, -1)),
        "rms_norm": Workload(
            ops.rms_norm,
            ROWS,
            lambda m, n: (randn(m, n), randn(n)),
            rows(2),
            lambda x, w: F.rms_norm(x, (x.shape[-1],), w, 1e-6),
        ),
        "layer_norm": Workload(
            ops.layer_norm,
            ROWS,
            lambda m, n: (randn(m, n), randn(n), randn(n)),
            rows(2),
            lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b, 1e-5),
        ),
        "matmul": Workload(
            ops.matmul,
            PRODUCTS,
            lambda m, n, k: (randn(m, k), randn(k, n)),
            flops,
            torch.matmul,
            unit="TFLOP/s",
        ),
        "linear_gelu": Workload(
            ops.linear_gelu,
            PRODUCTS,
            lambda m, n, k: (randn(m, k), randn(n, k), randn(n)),
            flops,
            lambda x, w, b: F.gelu(F.linear(x, w, b)),
            unit="TFLOP/s",
        ),
    }
    for name, found in peers.items():
        table[name].tilegym.update(found)
    return table


def milliseconds(call: Callable[[], object]) -> tuple[float, float, float]:
    """Median, lower and upper quintile of one call."""
    low, median, high = triton.testing.do_bench(call, warmup=25, rep=100, quantiles=[0.2, 0.5, 0.8])
    return median, low, high


def limits() -> dict[str, float]:
    """Copy bandwidth in GB/s and bf16 matrix rate in TFLOP/s of this GPU, now."""
    source = randn(2**30)
    target = torch.empty_like(source)
    copy = 2 * source.nbytes / milliseconds(lambda: target.copy_(source))[0] * 1e-6
    a, b = randn(8192, 8192), randn(8192, 8192)
    return {"copy_GBps": copy, "matmul_TFLOPS": 2 * 8192**3 / milliseconds(lambda: a @ b)[0] * 1e-9}


def measure(name: str, workload: Workload) -> list[dict[str, object]]:
    """Records of one operator: every shape, every contestant that agrees with PyTorch."""
    compiled = torch.compile(workload.torch, dynamic=False)
    contestants = {"tilewright": workload.op, "torch": workload.torch, "torch.compile": compiled, **workload.tilegym}
    scale = 1e-6 if workload.unit == "GB/s" else 1e-9
    records: list[dict[str, object]] = []
    for shape in workload.shapes:
        inputs = workload.inputs(*shape)
        expected = workload.torch(*inputs)
        tolerance = 2e-2 if expected.is_floating_point() else 0
        for who, call in contestants.items():
            record: dict[str, object] = {"op": name, "shape": list(shape), "who": who, "unit": workload.unit}
            try:
                torch.testing.assert_close(call(*inputs), expected, rtol=tolerance, atol=tolerance)
                times = milliseconds(lambda call=call, inputs=inputs: call(*inputs))
                record["rate"], record["high"], record["low"] = (workload.work(*shape) * scale / ms for ms in times)
            except Exception as error:  # a peer that fails is a result, and must not end the run
                record["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
            records.append(record)
        del inputs, expected
        torch.cuda.empty_cache()
    return records


def environment() -> dict[str, str]:
    """What a reader needs to repeat the run."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu, driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
    versions = {name: importlib.metadata.version(name) for name in ("torch", "triton", "cuda-tile")}
    try:
        versions["tilegym"] = importlib.metadata.version("tilegym")
    except importlib.metadata.PackageNotFoundError:
        versions["tilegym"] = "not installed"
    command = "PYTHONPATH=. python " + " ".join(sys.argv)
    return {"date": datetime.date.today().isoformat(), "gpu": gpu, "driver": driver, **versions, "command": command}


def show(records: list[dict[str, object]], found: dict[str, float]) -> None:
    """One line for each operator and shape: the rate, its fraction of the limit, and each peer's rate."""
    cases = {(str(r["op"]), tuple(r["shape"])) for r in records}  # type: ignore[arg-type]
    for op, shape in sorted(cases):
        rates = {r["who"]: r.get("rate") for r in records if r["op"] == op and tuple(r["shape"]) == shape}  # type: ignore[arg-type]
        memory = any(r["op"] == op and r["unit"] == "GB/s" for r in records)
        limit = found["copy_GBps"] if memory else (rates["torch"] or found["matmul_TFLOPS"])
        own = rates.pop("tilewright") or 0.0
        others = "  ".join(f"{who} {rate:.0f}" if rate else f"{who} failed" for who, rate in rates.items())
        print(f"{op:13} {'x'.join(map(str, shape)):17} {own:6.0f}  {own / limit:5.2f} of limit   {others}")


def main() -> None:
    """Parse the command line, measure, print the table and write the records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("op", nargs="*", help="operators to time (all)")
    parser.add_argument("--json", metavar="FILE", help="write the records to FILE")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU: PyTorch finds no CUDA device; run this where nvidia-smi lists one")
    table = workloads()
    unknown = set(options.op) - set(table)
    if unknown:
        parser.error(f"unknown operators {', '.join(sorted(unknown))}; there are {', '.join(table)}")
    torch.manual_seed(0)
    before = limits()
    records = [record for name in options.op or table for record in measure(name, table[name])]
    after = limits()
    found = {key: statistics.median([before[key], after[key]]) for key in before}
    print(f"copy {found['copy_GBps']:.0f} GB/s, torch bf16 matmul 8192^3 {found['matmul_TFLOPS']:.0f} TFLOP/s")
    show(records, found)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"environment": environment(), "limits": found, "records": records}, file, indent=1)


if __name__ == "__main__":
    main()
