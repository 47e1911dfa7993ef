"""Recorded answers are read, or named as broken with the way out."""

import pytest

from tilewright.config import read_answers
from tilewright.errors import UsageError


def write(root, content):
    (root / ".tilewright" / "ops").mkdir(parents=True)
    (root / ".tilewright" / "ops" / "gelu.yml").write_bytes(content)


def test_answers_are_read_with_those_of_copier(tmp_path):
    write(tmp_path, b"_commit: v1.2.3\nop: gelu\nskip: {}\n")
    assert read_answers("gelu", tmp_path) == {"_commit": "v1.2.3", "op": "gelu", "skip": {}}


def test_an_operator_without_a_record_was_not_made_here(tmp_path):
    with pytest.raises(UsageError, match="no operator gelu that tilewright made"):
        read_answers("gelu", tmp_path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "does not record the operator gelu"),
        (b"[1]", "does not record the operator gelu"),
        (b"op: relu", "does not record the operator gelu"),
        (b"{", "is not YAML"),
        (b"\xff\xfe", "is not YAML"),
        (b"op: gelu\nskip: 3", "has skip: 3"),
        (b"op: gelu\nskip: [tests]", "has skip: \\['tests'\\]"),
    ],
)
def test_a_broken_record_is_named_with_the_way_out(tmp_path, content, what):
    write(tmp_path, content)
    with pytest.raises(UsageError, match=what) as error:
        read_answers("gelu", tmp_path)
    assert "git checkout -- " in str(error.value)
    assert str(error.value).count("\n") == 1
