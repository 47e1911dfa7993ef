"""`tilewright compile` shows what the compiler makes of each kernel."""

import json

import pytest

from tests.support.hosts import edit
from tests.support.hosts import scale_add
from tilewright.cli.exits import Exit

pytest.importorskip("cuda.tile")
ONE = ("compile", "scale_add", "--arch", "sm_90", "--dtypes", "f32")


@pytest.fixture
def operator(here):
    return scale_add(here)


def test_table(operator, tilewright):
    result = tilewright(*ONE)
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 5
    assert result.stdout.split()[:4] == ["kernel", "arch", "dtype", "signature"]
    assert result.stderr.startswith("4 compilations, 0 failed, ")


def test_errors(operator, tilewright, here):
    edit(operator, operator.kernel, "ct.store(Dy, (i,), ", "ct.store(Dy, (i, i), ")
    result = tilewright(*ONE, "--json", "--junit", "compile.xml")
    assert result.exit_code == Exit.FINDINGS
    document = json.loads(result.stdout)
    assert len(document["errors"]) == 2
    assert "Index size 2 does not match the array rank 1" in document["errors"][0]
    assert 'failures="2"' in (here / "compile.xml").read_text()


def test_unknown_dtype(operator, tilewright):
    result = tilewright("compile", "scale_add", "--arch", "sm_90", "--dtypes", "int8")
    assert (result.exit_code, result.stderr) == (
        Exit.USAGE,
        "error: the tests of scale_add do not cover int8\nexpected one or more of float32, float16\n",
    )


def test_unknown_operator(operator, tilewright):
    assert tilewright("compile", "gelu").exit_code == Exit.USAGE


def test_shapes_that_launch_nothing(operator, tilewright):
    edit(operator, operator.test, "_aligned = [(64, 4096)]", "_aligned = [(0,)]")
    edit(operator, operator.test, "_ragged = [(7, 1021), (1,)]", "_ragged = [(0,)]")
    assert tilewright(*ONE).exit_code == Exit.NOTHING_RAN


def test_the_second_time_it_is_from_the_cache_unless_that_is_not_wanted(operator, tilewright):
    assert "from the cache" not in tilewright(*ONE).stderr
    assert tilewright(*ONE).stderr == "4 compilations, 0 failed, from the cache\n"
    assert "from the cache" not in tilewright(*ONE, "--no-cache").stderr
