"""In a TileGym checkout the shared files keep step with the operators."""

import shutil

import pytest

from tests.support import releases
from tests.support.releases import NEXT
from tests.support.releases import commit
from tests.support.releases import git
from tests.support.tilegym_checkout import pristine_tilegym_checkout
from tilewright.changes import apply
from tilewright.cli.plans import plan_new
from tilewright.render import Batch
from tilewright.render import Source

__all__ = ["pristine_tilegym_checkout"]

OPERATORS = ("first_op", "second_op")
OPS = "src/tilegym/ops/ops.py"
INIT = "src/tilegym/ops/cutile/__init__.py"
KERNEL = "template/tilegym/src/tilegym/ops/cutile{{ placed }}/{{ op }}.py.jinja"
STUB = "template/_partials/operator.jinja"


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """The template with a release in which every docstring of a stub has other words."""
    source = releases.check_out_template(tmp_path_factory.mktemp("template") / "template")
    first = shutil.copytree(source.root, tmp_path_factory.mktemp("first") / "template")
    releases.release(
        source,
        NEXT,
        {
            STUB: ("Returns:", "Returns the following:"),
            KERNEL: ('"""cuTile backend of', '"""New: cuTile backend of'),
        },
    )
    return Source(root=first, recorded=None), source


@pytest.fixture(scope="module")
def made(pristine_tilegym_checkout, template, tmp_path_factory):
    """A checkout with two operators of the first release; nobody may change it."""
    old, _ = template
    root = shutil.copytree(pristine_tilegym_checkout, tmp_path_factory.mktemp("made") / "TileGym", symlinks=True)
    for op in OPERATORS:
        apply(plan_new(old, {"op": op, "family": "softmax", "layout": "tilegym"}, root))
    commit(root, "Add operators")
    return root


@pytest.fixture
def checkout(made, template, tmp_path, monkeypatch):
    """A checkout of one's own; the installed template is the newer one."""
    root = shutil.copytree(made, tmp_path / "TileGym", symlinks=True)
    monkeypatch.chdir(root)
    monkeypatch.setattr("tilewright.render.locate", lambda: template[1])
    return root


def test_stubs_follow_the_template(tilewright, checkout):
    before = (checkout / OPS).read_text()
    count = before.count("Returns the following:")
    result = tilewright("update", "--all")
    assert result.exit_code == 0, result.output
    assert (checkout / OPS).read_text().count("Returns the following:") == count + 2
    assert (checkout / "src/tilegym/ops/cutile/first_op.py").read_text().count('"""New: ') == 1
    assert git(checkout, "diff", "--name-only") == ""  # all of it is staged
    assert tilewright("register", "first_op", "--check").exit_code == 0


def test_an_edited_stub_is_left_alone_and_named(tilewright, checkout):
    text = (checkout / OPS).read_text()
    place = text.index("def first_op(")
    edited = text[:place] + text[place:].replace("Returns:", "Returns (mine):", 1)
    (checkout / OPS).write_text(edited)
    commit(checkout)
    result = tilewright("update", "first_op")
    assert result.exit_code == 0, result.output
    assert "the stub of first_op was edited, and the template changed it" in result.stderr
    assert (checkout / OPS).read_text() == edited


def test_a_registration_that_was_lost_comes_back(tilewright, checkout):
    for path in (OPS, INIT):
        git(checkout, "checkout", "-q", "HEAD~1", "--", path)
    commit(checkout, "Lose both registrations")
    result = tilewright("update", "--all")
    assert result.exit_code == 0, result.output
    for op in OPERATORS:
        assert f'@dispatch("{op}"' in (checkout / OPS).read_text()
        assert f"from .{op} import {op}" in (checkout / INIT).read_text()
    assert tilewright("update", "--check").exit_code == 0


def test_a_changed_answer_reaches_the_stub(tilewright, checkout, template):
    assert tilewright("update", "first_op", "--data", "variant=log_softmax").exit_code == 0
    answers = {"op": "first_op", "family": "softmax", "variant": "log_softmax", "layout": "stub"}
    [stub] = Batch(template[1].template).render(answers, checkout, source="", recorded=False).files
    assert stub.content.decode().strip() in (checkout / OPS).read_text()
    assert (checkout / OPS).read_text().count('@dispatch("first_op"') == 1


def test_shared_files_are_not_looked_at_until_stub_and_registration_are_given_back(tilewright, checkout):
    before = (checkout / OPS).read_text()
    for op in OPERATORS:
        assert tilewright("detach", op, "stub", "registration").exit_code == 0
    commit(checkout)
    assert tilewright("update", "--all").exit_code == 0
    assert (checkout / OPS).read_text() == before
    commit(checkout)
    assert tilewright("detach", "first_op", "stub", "--undo").exit_code == 0
    assert (checkout / OPS).read_text() == before
    commit(checkout)
    assert tilewright("detach", "first_op", "registration", "--undo").exit_code == 0
    stub = before.index("def first_op(")
    expected = before[:stub] + before[stub:].replace("Returns:", "Returns the following:", 1)
    assert (checkout / OPS).read_text() == expected
