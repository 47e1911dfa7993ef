"""Failures that pytest kept."""

import json

import pytest

from tilewright.errors import MissingError
from tilewright.explain.failures import Failure
from tilewright.explain.failures import last_failures


def keep(folder, text):
    path = folder / ".pytest_cache/v/tilewright/failures"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_those_of_the_nearest_run_around(tmp_path):
    keep(tmp_path, json.dumps([["test_a.py::test_op", "text"]]))
    below = tmp_path / "tests/ops"
    below.mkdir(parents=True)
    assert last_failures(below) == [Failure(test="test_a.py::test_op", text="text")]


def test_a_run_without_the_plugin(tmp_path):
    (tmp_path / ".pytest_cache/v/cache").mkdir(parents=True)
    with pytest.raises(MissingError, match=r"has no texts of failures\n.*plugin\nrun pytest in the environment"):
        last_failures(tmp_path)


@pytest.mark.parametrize("text", ["no json", "[1]", "{}x", '[["a"]]'])
def test_a_file_that_is_damaged(tmp_path, text):
    keep(tmp_path, text)
    with pytest.raises(MissingError, match=r"cannot be read\nrun pytest again"):
        last_failures(tmp_path)
