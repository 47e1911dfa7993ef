"""The page on performance, from recorded runs, as `tilewright bench` prints them or writes them with --json."""

import json
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from writers.tables import table

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks/results"
PEERS = {"torch": "torch", "compile": "torch.compile", "tilegym": "TileGym", "liger": "Liger"}


def performance() -> Iterator[str]:
    """Rates of the reference operators beside their peers, each as the newest run that has it measured them."""
    yield (
        "A rate is the work of the problem over the median time. The limit is the rate of a copy on the device, for"
        " products that of torch's product of large matrices, measured in the same run; operators that write little"
        " exceed a copy. TileGym is its fastest variant. A peer that shows - failed, was wrong or is missing in that"
        " run; the best peer is one of the others. Absolute rates differ between runs: compare within one."
    )
    for path in sorted(RESULTS.glob("h200-[0-9]*.txt"), reverse=True):
        release, what = path.stem.removeprefix("h200-").split("-")
        yield from ("", f"## tilewright {release}, {what}", "", "```text")
        yield from path.read_text(encoding="utf-8").rstrip().splitlines()
        yield "```"
    seen: set[str] = set()
    for release, run in _runs():
        new = [
            (operator["name"], problem)
            for operator in run["operators"]
            for problem in operator["problems"]
            if _title(operator["name"], problem) not in seen
        ]
        if not new:
            continue
        seen.update(_title(*each) for each in new)
        found = run["surroundings"]
        versions = ", ".join(
            f"{name} {version or 'not installed'}"
            for name, version in found["versions"].items()
            if name != "tilewright"
        )
        yield from ("", f"## tilewright {release}", "")
        yield f"Measured on {found['date'][:10]}, on one {found['gpu']} (driver {found['driver']}, {versions}):"
        yield from ("", "```text", found["command"], "```", "")
        yield from table(
            *("Operator", "Shape", "Dtype", "Unit", "Limit", "tilewright", "Of limit", "Of best peer"),
            *PEERS.values(),
            rows=(_row(*each) for each in new),
        )


def _runs() -> list[tuple[str, dict[str, Any]]]:
    """Releases and what was measured of them, the newest first."""
    files = {tuple(map(int, path.stem.removeprefix("h200-").split("."))): path for path in RESULTS.glob("h200-*.json")}
    return [
        (".".join(map(str, release)), json.loads(files[release].read_text(encoding="utf-8")))
        for release in sorted(files, reverse=True)
    ]


def _title(name: str, problem: Mapping[str, Any]) -> str:
    return f"{name} backward" if problem.get("backward") else name  # runs before 0.5.0 had no gradients


def _row(name: str, problem: Mapping[str, Any]) -> tuple[str, ...]:
    measurements = {each["contestant"]: each for each in problem["measurements"]}
    own = measurements["cutile"]
    return (
        _title(name, problem),
        "x".join(map(str, problem["size"].values())),
        problem["dtype"],
        problem["unit"],
        _number(problem["limit"], 0),
        _number(own["rate"] and own["rate"]["median"], 0),
        _number(own["of_limit"], 2),
        _number(own["of_best_peer"], 2),
        *(_number(_fastest(peer, measurements), 0) for peer in PEERS),
    )


def _fastest(peer: str, measurements: Mapping[str, Any]) -> float | None:
    rates = [
        each["rate"]["median"]
        for name, each in measurements.items()
        if each["rate"] and (name == peer or name.startswith(f"{peer}_"))
    ]
    return max(rates, default=None)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
