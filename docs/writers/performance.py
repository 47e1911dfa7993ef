"""The page on performance, from one recorded run of the benchmark."""

import json
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path

from writers.tables import table

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks/results/h200.json"


def performance() -> Iterator[str]:
    """Rates of the reference operators beside their peers, as one run of `benchmarks/peers.py` measured them."""
    run = json.loads(RESULTS.read_text(encoding="utf-8"))
    environment, limits = run["environment"], run["limits"]
    versions = ", ".join(
        f"{name} {environment[name]}" for name in ("driver", "torch", "triton", "cuda-tile", "tilegym")
    )
    yield f"One run on {environment['date']}, on one {environment['gpu']} ({versions}), bf16:"
    yield from ("", "```text", environment["command"], "```", "")
    yield (
        f"Limits measured in the same run: copy {limits['copy_GBps']:.0f} GB/s, torch's product of 8192x8192 matrices"
        f" {limits['matmul_TFLOPS']:.0f} TFLOP/s. A rate is the work of the problem over the median time. The fraction"
        " is of the copy, for products of torch. TileGym is its fastest variant. Absolute rates differ between runs:"
        " compare within one."
    )
    yield ""
    yield from (f"- {note}" for note in run.get("notes", ()))
    yield ""
    cases: dict[tuple[str, ...], dict[str, float]] = {}
    for record in run["records"]:
        case = cases.setdefault((record["op"], "x".join(map(str, record["shape"])), record["unit"]), {})
        if "rate" in record:
            case[record["who"]] = record["rate"]
    yield from table(
        "Operator",
        "Shape",
        "Unit",
        "tilewright",
        "Fraction",
        "torch",
        "torch.compile",
        "TileGym",
        rows=(_rates(*case, rates, limits["copy_GBps"]) for case, rates in cases.items()),
    )


def _rates(op: str, shape: str, unit: str, rates: Mapping[str, float], copy: float) -> tuple[str, ...]:
    own = rates["tilewright"]
    fraction = own / (copy if unit == "GB/s" else rates["torch"])
    tilegym = max((rate for who, rate in rates.items() if who.startswith("tilegym")), default=None)
    others = (rates.get("torch"), rates.get("torch.compile"), tilegym)
    return (
        op,
        shape,
        unit,
        f"{own:.0f}",
        f"{fraction:.2f}",
        *("-" if rate is None else f"{rate:.0f}" for rate in others),
    )
