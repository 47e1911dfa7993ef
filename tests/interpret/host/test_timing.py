"""Tuning and timing on the emulated device."""

import time

import cuda.tile as ct
import pytest

from tilewright.cutile.targets import select
from tilewright.interpret.host.emulation import emulated_device


@ct.kernel
def kernel(X, TILE: ct.Constant[int]):
    ct.store(X, (ct.bid(0),), ct.zeros((TILE,), X.dtype))


def launch(stream, grid, kernel, arguments):
    if arguments[1] < 8:
        raise ValueError(f"no tile of {arguments[1]}")


@pytest.fixture
def gpu():
    with emulated_device(select("sm_90")[0], launch):
        yield


def search(space):
    return ct.tune.exhaustive_search(
        space,
        "stream",
        lambda tile: (64 // tile,),
        kernel,
        lambda tile: ("x", tile),
        lambda tile: {"occupancy": tile},
        quiet=True,
    )


@pytest.mark.usefixtures("gpu")
def test_first_configuration_that_works_is_the_best():
    result = search([2, 4, 8, 16])
    assert result.best.config == 8
    assert [config for config, *_ in result.failures] == [2, 4]
    assert "no tile of 2" in str(result)


@pytest.mark.usefixtures("gpu")
def test_no_configuration_that_works():
    with pytest.raises(ValueError, match=r"No valid config found[^$]*no tile of 2"):
        search([2, 4])
    with pytest.raises(ValueError, match="empty"):
        search([])


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", ["do_bench", "do_bench_cudagraph"])
def test_benchmark_measures_one_run(name):
    testing = pytest.importorskip("triton.testing")
    calls = []

    def function():
        calls.append(1)
        time.sleep(0.01)

    bench = getattr(testing, name)
    assert 10 <= bench(function) < 1000
    assert len(bench(function, quantiles=[0.5, 0.2, 0.8])) == 3
    assert len(bench(function, return_mode="all")) == 1
    assert len(calls) == 3
