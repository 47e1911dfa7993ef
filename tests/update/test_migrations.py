"""Answers are carried over by the rules that a template ships."""

import shutil

import pytest

from tests.support.releases import commit
from tests.support.releases import make_host
from tests.support.tiny_template import write_release
from tilewright.config import find_host
from tilewright.errors import RenderError
from tilewright.update import carry_out
from tilewright.update import plan_update
from tilewright.update import templates
from tilewright.update.migrations import migrate
from tilewright.update.pack import pack

RULES = """\
- version: "0.2.0"
  rename: {shapes: sizes}
- version: "0.3.0"
  split: {precision: {tf32: {math: fast, products: one}}}
  rename: {sizes: extents}
"""


@pytest.fixture
def template(tmp_path):
    (tmp_path / "migrations.yml").write_text(RULES)
    return tmp_path


ANSWERS = {"op": "my_op", "shapes": "1x2", "precision": "tf32"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("v0.1.0", "v0.1.5", ANSWERS),
        ("v0.1.0", "v0.2.0", {"op": "my_op", "sizes": "1x2", "precision": "tf32"}),
        ("v0.1.0", "v0.3.0", {"op": "my_op", "extents": "1x2", "math": "fast", "products": "one"}),
        ("v0.2.0", "v0.3.0", {"op": "my_op", "shapes": "1x2", "math": "fast", "products": "one"}),
    ],
)
def test_the_rules_between_two_versions_apply_in_order(template, old, new, expected):
    assert migrate(ANSWERS, template, old=old, new=new) == expected


def test_an_answer_that_is_not_split_stays(template):
    answers = {"precision": "ieee"}
    assert migrate(answers, template, old="v0.1.0", new="v0.3.0") == answers


def test_a_template_without_rules_changes_nothing(tmp_path):
    assert migrate(ANSWERS, tmp_path, old="v0.1.0", new="v0.3.0") == ANSWERS


def test_rules_that_are_none_are_refused(tmp_path):
    (tmp_path / "migrations.yml").write_text("- {version: '1.0', run: 'rm -rf /'}\n")
    with pytest.raises(RenderError, match="has a rule"):
        migrate(ANSWERS, tmp_path, old="v0.1.0", new="v1.0.0")


def test_an_update_asks_the_renamed_question_with_the_old_answer(tmp_path, monkeypatch):
    source = write_release(tmp_path / "template", "1.0.0", {"file.py": b"first\n"})
    questions = source.root / "template" / "copier.yml"
    questions.write_text(questions.read_text() + "colour: {type: str, default: red}\n")
    make_host(tmp_path / "host", source, {"op": "my_op", "colour": "blue"})
    commit(source.root, "colour")
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "v1.0.0.tar.xz").write_bytes(pack(source.root, "HEAD"))
    write_release(source.root, "2.0.0", {"file.py": b"second\n"})
    questions.write_text(questions.read_text() + "color: {type: str, default: red}\n")
    (source.root / "template" / "migrations.yml").write_text("- {version: 2.0.0, rename: {colour: color}}\n")
    shutil.rmtree(source.root / ".git")  # its tag is older than the question
    monkeypatch.setattr(templates, "RELEASES", tmp_path / "releases")
    carry_out(plan_update(find_host(tmp_path / "host"), source, ["my_op"]))
    record = (tmp_path / "host" / ".tilewright/ops/my_op.yml").read_text()
    assert "color: blue\n" in record
    assert "colour" not in record
