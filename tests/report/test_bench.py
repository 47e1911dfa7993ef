"""What could not be measured, for a person."""

from dataclasses import replace

from tests.support import results
from tilewright.report.bench import failures


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
