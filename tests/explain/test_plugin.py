"""What pytest says and keeps of failures where the plugin is active."""

import json
import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tilewright.explain.compared import summed_up

torch = pytest.importorskip("torch")

FILE = """\
import torch


def close(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def test_far():
    expected = torch.ones(4, 100)
    actual = expected.clone()
    actual[:, 64:] = 3
    close(actual, expected)


def test_pairs():
    torch.testing.assert_close([torch.ones(2), torch.zeros(2)], [torch.ones(2), torch.ones(2)])


def test_shapes():
    close(torch.ones(2), torch.ones(3))


class Unreadable(torch.Tensor):
    def detach(self):
        raise RuntimeError("CUDA error: an earlier fault\\nmore of it")


def test_unreadable():
    close(torch.zeros(2).as_subclass(Unreadable), torch.ones(2))


def test_no_tensors():
    assert 1 == 2


def test_fine():
    close(torch.ones(2), torch.ones(2))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "test_far.py").write_text(FILE)
    return folder


@pytest.fixture(scope="module")
def output(folder):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "--junit-xml=report.xml"]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert "5 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    return done.stdout


def test_a_failed_comparison_gets_a_summary(output):
    assert output.count("- tilewright -") == 3
    assert "algorithm: the wrong elements are 3 times the reference" in output
    assert "144 of 400 elements differ (float32 of shape (4, 100))" in output
    assert "where: only at indices 64 to 99 of axis 1 (length 100): the last tile, which hangs over" in output


def test_of_a_pair_that_is_not_close(output):
    assert "algorithm: the wrong elements are all 0" in output


def test_tensors_that_cannot_be_read_do_not_end_the_run(output):
    assert "the tensors cannot be summed up: RuntimeError: CUDA error: an earlier fault\n" in output


@pytest.mark.usefixtures("output")
def test_the_summary_is_in_the_junit_file(folder):
    cases = {case.get("name"): case for case in ElementTree.parse(folder / "report.xml").iter("testcase")}
    texts = {name: [each.get("value") for each in case.iter("property")] for name, case in cases.items()}
    assert texts["test_far"][0].startswith("algorithm: the wrong elements are 3 times")
    assert texts["test_shapes"] == texts["test_no_tensors"] == texts["test_fine"] == []


@pytest.mark.usefixtures("output")
def test_failures_are_kept(folder):
    kept = dict(json.loads((folder / ".pytest_cache/v/tilewright/failures").read_text()))
    assert list(kept) == [
        f"test_far.py::test_{name}" for name in ("far", "pairs", "shapes", "unreadable", "no_tensors")
    ]
    assert "Tensor-likes are not close!" in kept["test_far.py::test_far"]


def summary_of(actual, expected, **tolerances):
    with pytest.raises(AssertionError) as failure:
        torch.testing.assert_close(actual, expected, **tolerances)
    return summed_up(failure.tb)


def test_of_the_tensors_by_name_that_are_not_close():
    summary = summary_of({"a": torch.ones(2), "b": torch.zeros(3)}, {"a": torch.ones(2), "b": torch.ones(3)})
    assert "3 of 3 elements differ" in summary


def test_the_tolerances_are_those_of_the_comparison():
    actual, expected = torch.tensor([1.0, 1.01, 2.0]), torch.ones(3)
    assert "1 of 3 elements differ" in summary_of(actual, expected, rtol=0.0, atol=0.1)
    assert "2 of 3 elements differ" in summary_of(actual, expected)
