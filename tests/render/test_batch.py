"""Many operators of one template are rendered as copier renders each of them."""

from pathlib import Path

import pytest

from tilewright.errors import UsageError
from tilewright.render import Batch
from tilewright.render import locate
from tilewright.render import render

ANSWERS = (
    {"op": "swish", "family": "elementwise", "formula": "x * sigmoid(beta * x), beta=1.0"},
    {"op": "normed", "family": "row_norm", "variant": "layer_norm", "backward": True},
    {"op": "product", "family": "matmul", "bias": True, "dtypes": ["float16"], "skip": {"benchmark": "no baseline"}},
    {"op": "total", "family": "reduction", "layout": "tilegym", "placement": "experimental"},
    {"op": "alone", "family": "softmax", "layout": "single_file"},
)


@pytest.fixture(scope="module")
def batch() -> Batch:
    return Batch(locate().template)


@pytest.mark.parametrize("answers", ANSWERS, ids=lambda answers: answers["op"])
@pytest.mark.parametrize("recorded", [False, True])
def test_the_files_are_those_of_copier(batch, tmp_path, answers, recorded):
    source = locate()
    expected = render(source, answers, tmp_path, overwrite=True)
    rendering = batch.render(answers, tmp_path, source=str(source.root), recorded=recorded)
    assert rendering == expected


def test_nothing_is_written(batch, tmp_path):
    batch.render({"op": "my_op"}, tmp_path, source="here", recorded=False)
    assert list(tmp_path.iterdir()) == []


def test_the_record_names_the_source_that_it_is_told(batch, tmp_path):
    record = Path(".tilewright/ops/my_op.yml")
    for source in ("https://example.com/tilewright.git", "."):
        rendering = batch.render({"op": "my_op"}, tmp_path, source=source, recorded=True)
        [content] = [file.content for file in rendering.files if Path(file.path) == record]
        assert f"_src_path: {source}\n".encode() in content


def test_an_answer_that_is_refused_is_an_error_for_the_version_that_it_was_given_to(batch, tmp_path):
    answers = {"op": "my_op", "family": "softmax", "variant": "hardmax"}
    with pytest.raises(UsageError, match="hardmax"):
        batch.render(answers, tmp_path, source="here", recorded=False)


def test_an_answer_of_an_earlier_version_that_is_refused_gives_way_to_the_default(batch, tmp_path):
    answers = {"op": "my_op", "family": "softmax", "variant": "hardmax"}
    assert batch.render(answers, tmp_path, source="here", recorded=True).answers["variant"] == "softmax"
