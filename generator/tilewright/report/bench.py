"""Measurements for a person: a table for each operator, and below it what could not be measured."""

from collections.abc import Iterator

from rich.table import Table

from tilewright.model.measurement import OWN
from tilewright.model.measurement import Comparison
from tilewright.model.measurement import Measurement
from tilewright.model.measurement import OperatorBenchmark


def fill(table: Table, benchmark: OperatorBenchmark) -> None:
    """Columns and rows: the rate of every contestant, and what the operator's own comes to."""
    peers = list(
        dict.fromkeys(m.contestant for c in benchmark.comparisons for m in c.measurements if m.contestant != OWN)
    )
    backward = any(comparison.problem.backward for comparison in benchmark.comparisons)
    for column in (f"{benchmark.name} backward" if backward else benchmark.name, "dtype", "unit"):
        table.add_column(column)
    for column in ("limit", OWN, "of limit", "of best peer", *peers):
        table.add_column(column, justify="right")
    for comparison in benchmark.comparisons:
        found = {measurement.contestant: measurement for measurement in comparison.measurements}
        problem, own = comparison.problem, found.get(OWN)
        table.add_row(
            problem.shape,
            problem.dtype,
            problem.unit,
            f"{comparison.limit:.0f}" if comparison.limit else "-",
            _rate(comparison, own),
            _fraction(comparison.of_limit(own) if own else None),
            _fraction(comparison.of_best_peer(own) if own else None),
            *(_rate(comparison, found.get(name)) for name in peers),
        )


def _rate(comparison: Comparison, measurement: Measurement | None) -> str:
    """Median, and half the distance of the quintiles around it."""
    if measurement is None:
        return "-"
    rate = comparison.rate(measurement)
    if rate is None:
        return measurement.verdict
    digits = ".0f" if rate.median >= 100 else ".3g"
    return f"{rate.median:{digits}} ±{(rate.high - rate.low) / 2 / rate.median:.1%}"


def _fraction(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def failures(benchmark: OperatorBenchmark) -> Iterator[str]:
    """One line for each contestant and reason."""
    if benchmark.error:
        yield f"{benchmark.name} failed: {benchmark.error}"
    where: dict[tuple[str, str, str], list[str]] = {}
    for comparison in benchmark.comparisons:
        for each in comparison.measurements:
            if each.verdict != "ok":
                case = f"{comparison.problem.shape} {comparison.problem.dtype}"
                where.setdefault((each.contestant, each.verdict, each.error), []).append(case)
    for (contestant, verdict, error), cases in where.items():
        every = "everywhere" if len(cases) == len(benchmark.comparisons) else ", ".join(cases)
        yield f"{contestant} {verdict} ({every}): {error}"
