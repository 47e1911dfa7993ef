"""What candidates come to, by the compiler, and whether they are right, by the interpreter."""

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from reference_ops import backend
from tests.benchmark import bench_softmax
from tilewright import interpret
from tilewright.codemod.table import Place
from tilewright.codemod.table import Table
from tilewright.config import find_host
from tilewright.config import read_answers
from tilewright.render import locate
from tilewright.tune import worker
from tilewright.tune.laboratory import Laboratory
from tilewright.tune.laboratory import _setup
from tilewright.tune.space import Choices
from tilewright.tune.space import Space
from tilewright.verify.operators import find_operators

ROOT = Path(__file__).parents[2]


@cache
def operators():
    return {operator.name: operator for operator in find_operators(find_host(ROOT))}


def reference(name):
    operator = operators()[name]
    return operator, operator.path(operator.kernel).read_text()


@pytest.fixture
def timer(monkeypatch):
    """Times candidates of softmax on the interpreter; what they register is forgotten afterwards."""
    monkeypatch.setattr(bench_softmax, "DTYPES", [torch.float16])
    operator, text = reference("softmax")
    setup = _setup(operator) | {"target": None}
    monkeypatch.setitem(sys.modules, setup["kernel"]["module"], sys.modules.get(setup["kernel"]["module"]))
    registered = dict(backend._REGISTRY["softmax"])
    with interpret.enabled():
        yield worker.Timer(setup), text
    backend._REGISTRY["softmax"].clear()
    backend._REGISTRY["softmax"].update(registered)


def test_time_of_a_right_candidate(timer):
    timer, text = timer
    found = timer.time(text, [3, 40], "float16", 10)["milliseconds"]
    assert 0 < found["low"] <= found["median"] <= found["high"]


def test_candidate_that_is_wrong(timer):
    timer, text = timer
    wrong = text.replace("(tys[j] * scale)", "(tys[j] * scale * 1.1)")
    assert wrong != text
    with pytest.raises(AssertionError):
        timer.time(wrong, [3, 40], "float16", 10)
    assert timer.time(text, [3, 40], "float16", 10)


def test_candidates_are_compared_as_the_benchmark_says(timer):
    timer, text = timer

    def refuse(_found, _expected):
        raise AssertionError("not as the benchmark wants it")

    timer._bench.workload = replace(timer._bench.workload, check=refuse)
    with pytest.raises(AssertionError, match="not as the benchmark wants it"):
        timer.time(text, [3, 40], "float16", 10)
    with pytest.raises(AssertionError, match="not as the benchmark wants it"):
        timer.check(text, "float16")


def test_candidate_that_is_wrong_where_the_benchmark_does_not_look(timer):
    """Without its mask the last tile of a row that is no multiple of it is wrong."""
    timer, text = timer
    timer._bench.cases = lambda _dtype: [{"x": torch.randn(3, shape, device="cuda")} for shape in (64, 37)]
    assert timer.check(text, "float16") == {}
    wrong = text.replace("txs[-1], -math.inf)", "txs[-1], 0.0)", 1)
    assert wrong != text
    timer.time(wrong, [3, 64], "float16", 10)
    with pytest.raises(AssertionError):
        timer.check(wrong, "float16")


def test_cases_are_those_of_the_tests(timer):
    timer, _ = timer
    shapes = [tuple(kwargs["x"].shape) for kwargs in timer._bench.cases("float16")]
    assert len(shapes) > 4
    assert any(shape[-1] % 8 for shape in shapes)


def test_launches_are_told_apart_by_what_is_launched():
    """Rows of 4096 elements are launched with the first entry of the table, rows of 16384 with the last."""
    operator, text = reference("softmax")
    table = Table(text, Place(name="HINTS", arch="sm_90"), path=operator.kernel)
    other = table.replaced(0, {"occupancy": 2})
    failing = text.replace("return _forward(x, dim % span, out)", "_forward(x, dim % span, out), dim[0]")
    assert text not in (other, failing)
    with Laboratory(operator, "sm_90", jobs=1) as laboratory:
        assert laboratory.benchmark()["names"] == ["M", "N"]
        own, failed, again, changed = laboratory.compile(
            [text, failing, f"{text}# again\n", other], [(64, 4096), (64, 16384)], "float16"
        )
    assert not own.error
    assert "'int' object is not subscriptable" in failed.error
    assert again == own  # whatever was launched before the failure
    assert own.keys[0] != changed.keys[0]
    assert own.keys[1] == changed.keys[1]


@pytest.mark.parametrize("family", [path.parent.name for path in sorted(locate().partials.glob("*/tune.yml"))])
def test_reference_operators_have_the_table_of_their_family(family):
    members = [each for each in operators().values() if read_answers(each.name, ROOT)["family"] == family]
    assert members
    for operator in members:
        answers = read_answers(operator.name, ROOT)
        choices = Choices.read(locate().partials, family, answers.get("variant", ""))
        text = operator.path(operator.kernel).read_text()
        itemsize = getattr(torch, answers["dtypes"][0]).itemsize
        for arch in ("sm_80", "sm_90", "sm_100", "sm_120")[itemsize == 1 :]:  # no 8-bit floats before sm_90
            place = Place(name=choices.table, arch=arch, itemsize=itemsize if choices.by_itemsize else None)
            for entry in Table(text, place, path=operator.kernel).entries:
                space = Space(choices, entry.values)
                assert space.values(space.start) == {name: entry.values[name] for name in space.values(space.start)}
