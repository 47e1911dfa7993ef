"""The parent of the process that measures: what ends the child costs one contestant."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import bench_child
from tests.support.hosts import scale_add
from tilewright.bench.run import Bench

COMMAND = (bench_child.__file__,)


@pytest.fixture
def measure(tmp_path: Path):
    """Benchmarks of operators of these names, by the stand-in."""
    operator = scale_add(tmp_path)

    def run(*names: str, **options):
        bench = Bench(operator.host, command=COMMAND, **{"patience": 30.0, **options})
        return list(bench.run([replace(operator, name=name) for name in names]))

    return run


def contestants(benchmark):
    (comparison,) = benchmark.comparisons
    return {each.contestant: (each.verdict, each.error) for each in comparison.measurements}


def test_all_contestants_of_all_operators(measure):
    found = measure("fine", "refused", "wrong")
    assert [each.name for each in found] == ["fine", "refused", "wrong"]
    assert contestants(found[0]) == {"cutile": ("ok", ""), "torch": ("ok", "")}
    assert [each.error for each in found] == ["", "it has no SIZES", ""]
    assert [each.failed for each in found] == [False, True, True]


def test_crash_costs_the_contestant(measure):
    found = measure("crashing", "fine")
    assert contestants(found[0]) == {
        "cutile": ("ok", ""),
        "crash": ("failed", "the process was ended by SIGSEGV"),
        "torch": ("ok", ""),
    }
    assert not found[0].failed
    assert contestants(found[1]) == {"cutile": ("ok", ""), "torch": ("ok", "")}


def test_hang_costs_the_contestant(measure):
    (found,) = measure("hanging", patience=2.0)
    assert contestants(found)["hang"] == ("failed", "no answer in 2 s")
    assert contestants(found)["torch"] == ("ok", "")


def test_end_in_good_order_costs_the_contestant(measure):
    (found,) = measure("leaving")
    assert contestants(found)["leave"] == ("failed", "the process ended")
    assert contestants(found)["torch"] == ("ok", "")


def test_unusable_gpu_costs_the_contestant_that_made_it_so(measure):
    (found,) = measure("poisoned")
    assert contestants(found) == {
        "cutile": ("ok", ""),
        "poison": ("failed", "illegal memory access"),
        "torch": ("ok", ""),
    }


def test_child_that_cannot_work_is_no_endless_loop(measure):
    broken, fine = measure("broken", "fine")
    assert (broken.error, broken.failed) == ("ImportError: no such package", True)
    assert contestants(fine)["cutile"] == ("ok", "")


@pytest.mark.parametrize("first", ["fine", "refused"])
def test_operator_that_is_complete_is_not_blamed_for_the_next(measure, first):
    (alone,) = measure(first)
    complete, broken, fine = measure(first, "broken", "fine")
    assert complete == alone
    assert broken.error == "ImportError: no such package"
    assert contestants(fine)["cutile"] == ("ok", "")


def test_several_processes_are_prepared_before_one_measures(measure, tmp_path):
    found = measure("fine", "crashing", "wrong", "refused", "unprepared", jobs=3)
    assert {path.name for path in tmp_path.glob("prepared-*")} == {
        "prepared-fine",
        "prepared-crashing",
        "prepared-wrong",
    }
    alone = measure("fine", "refused", "crashing", "unprepared", "wrong")
    assert {each.name: each for each in found} == {each.name: each for each in alone}


def test_more_processes_than_operators(measure):
    assert [each.name for each in measure("fine", jobs=4)] == ["fine"]


def test_arithmetic(measure):
    """4 MB in 1 ms is 4 GB/s, half of the limit, and twice what the peer does."""
    (found,) = measure("fine")
    (comparison,) = found.comparisons
    own = comparison.own
    rate = comparison.rate(own)
    assert (rate.median, rate.low, rate.high) == pytest.approx((4.0, 3.2, 5.0))
    assert comparison.of_limit(own) == pytest.approx(0.5)
    assert comparison.of_best_peer(own) == pytest.approx(2.0)
