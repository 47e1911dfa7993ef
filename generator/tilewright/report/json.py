"""Results for a machine: one document each, described by the schema of the same name in `schemas/`."""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tilewright.model.host import Host
from tilewright.model.kernel import Compilation
from tilewright.model.measurement import OperatorBenchmark
from tilewright.model.measurement import Surroundings
from tilewright.model.operator import Operator
from tilewright.model.outcome import StepOutcome
from tilewright.model.outcome import Verdict
from tilewright.tune.run import Tuning
from tilewright.update.behind import Standing
from tilewright.verify.doctor import Finding
from tilewright.verify.status import OperatorStatus

Document = dict[str, Any]


def verify(host: Host, outcomes: Mapping[str, Sequence[StepOutcome]]) -> Document:
    """The steps of each operator."""
    counts = Counter(outcome.verdict for steps in outcomes.values() for outcome in steps)
    return {
        "host": _host(host),
        "operators": [{"name": name, "steps": [asdict(step) for step in steps]} for name, steps in outcomes.items()],
        "counts": {verdict.value: counts[verdict] for verdict in Verdict},
    }


def compilation(host: Host, result: Compilation) -> Document:
    """Every compiled kernel of one operator."""
    document = asdict(result)
    return {"host": _host(host), "operator": document.pop("op"), **document, "errors": list(result.errors)}


def status(host: Host, rows: Sequence[OperatorStatus], installed: str, standing: Standing) -> Document:
    """Operators x steps x template version."""
    behind = {each.name: each for each in standing.behind}
    return {
        "host": _host(host),
        "template_version": installed,
        "operators": [
            {
                "name": row.name,
                "template_version": row.template_version or None,
                "behind": [asdict(release) for release in behind[row.name].releases] if row.name in behind else None,
                "detached": list(standing.detached.get(row.name, ())),
                "steps": [asdict(step) for step in row.steps],
            }
            for row in rows
        ],
    }


def doctor(findings: Iterable[Finding]) -> Document:
    """What is present and what is missing."""
    return {"findings": [asdict(finding) for finding in findings]}


def bench(host: Host, found: Surroundings, benchmarks: Iterable[OperatorBenchmark]) -> Document:
    """Every contestant on every problem, and the limits of the run."""
    return {"host": _host(host), "surroundings": asdict(found), "operators": [_benchmark(each) for each in benchmarks]}


def tuning(host: Host, operator: Operator, found: Tuning, *, written: bool, files: Sequence[Document]) -> Document:
    """Every entry of an operator's table before and after, and what was tried."""
    return {
        "host": _host(host),
        "operator": operator.name,
        "date": found.date,
        "gpu": found.gpu or None,
        "entries": [asdict(entry) for entry in found.entries],
        "written": written,
        "files": list(files),
    }


def _benchmark(benchmark: OperatorBenchmark) -> Document:
    return {
        "name": benchmark.name,
        "error": benchmark.error,
        "limits": benchmark.limits and asdict(benchmark.limits),
        "problems": [
            {
                **asdict(comparison.problem),
                "limit": comparison.limit,
                "measurements": [
                    {
                        **asdict(measurement),
                        "rate": (rate := comparison.rate(measurement)) and asdict(rate),
                        "of_limit": comparison.of_limit(measurement),
                        "of_best_peer": comparison.of_best_peer(measurement),
                    }
                    for measurement in comparison.measurements
                ],
            }
            for comparison in benchmark.comparisons
        ],
    }


def _host(host: Host) -> Document:
    return {"root": str(host.root), "layout": host.layout, "package": host.package}
