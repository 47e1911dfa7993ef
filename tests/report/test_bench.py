"""What was measured, and what could not be, for a person."""

from dataclasses import replace

import pytest
from rich.table import Table

from tests.support import results
from tilewright.report.bench import failures
from tilewright.report.bench import fill


@pytest.mark.parametrize(("work", "rate"), [(4096000, "2000"), (4096 * 97, "194"), (4096 * 16, "32"), (614.4, "0.3")])
def test_small_rates_keep_their_digits(work, rate):
    benchmark, _ = results.BENCHMARKS
    (comparison,) = benchmark.comparisons
    table = Table()
    fill(
        table,
        replace(benchmark, comparisons=(replace(comparison, problem=replace(comparison.problem, work=work)),)),
    )
    assert list(table.columns[4].cells) == [f"{rate} ±2.4%"]  # quintiles of 0.002 and 0.0021 around 0.002048 ms


def test_reason_is_said_once_with_the_problems_it_holds_for():
    benchmark, refused = results.BENCHMARKS
    (comparison,) = benchmark.comparisons
    longer = replace(comparison, problem=replace(comparison.problem, size={"M": 2048, "N": 1000}))
    other = replace(longer, measurements=())
    missing = "liger missing ({}): ImportError: no liger"
    assert list(failures(replace(benchmark, comparisons=(comparison, longer)))) == [missing.format("everywhere")]
    assert list(failures(replace(benchmark, comparisons=(comparison, longer, other)))) == [
        missing.format("1024x1000 float16, 2048x1000 float16")
    ]
    assert list(failures(refused)) == ["by_hand failed: bench_by_hand.py has no SIZES"]
