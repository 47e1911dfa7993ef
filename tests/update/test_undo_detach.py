"""A step that is given back gets what the template changed since it was detached, and keeps its owner's edits."""

import json

import pytest

from tests.support.releases import NEXT
from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import git
from tests.support.releases import own_version
from tilewright.render import Batch

KERNEL = "my_ops/swish/cutile.py"
RECORD = ".tilewright/detached/swish.yml"
NEW_WORDS = '"""The cuTile kernel of swish."""\n'


@pytest.fixture
def detached(tilewright, host):
    """A host whose operators moved on, but for a kernel that its owner took over and edited."""
    assert tilewright("detach", "swish", "kernel").exit_code == 0
    with (host / KERNEL).open("a") as file:
        file.write("# mine\n")
    commit(host)
    assert tilewright("update", "--all").exit_code == 0
    commit(host)
    assert not (host / KERNEL).read_text().startswith(NEW_WORDS)
    return host


def kernel_made_with(source, host, **answers):
    rendering = Batch(source.template).render(answers, host, source=str(source.root), recorded=False)
    return next(file.content for file in rendering.files if file.path.name == "cutile.py")


def test_it_has_what_the_template_changed_since_and_the_edit(tilewright, detached, pristine):
    result = tilewright("detach", "swish", "kernel", "--undo")
    assert result.exit_code == 0, result.output
    expected = kernel_made_with(pristine[0], detached, op="swish", formula="x * sigmoid(x)")
    assert (detached / KERNEL).read_bytes() == expected + b"# mine\n"
    assert expected.startswith(NEW_WORDS.encode())
    assert not (detached / RECORD).exists()
    assert git(detached, "status", "--porcelain").splitlines() == [f"D  {RECORD}", f"M  {KERNEL}"]
    assert f"swish: v{own_version()} -> v{NEXT}" in result.stderr
    assert 'git commit -m "Have kernel of swish updated again"' in result.stderr


def test_it_was_made_from_the_answers_of_that_time(tilewright, detached, pristine):
    """The owner followed the new formula by hand; the template writes it in other words, so it is for him to choose."""
    assert tilewright("update", "swish", "--data", "formula=x * tanh(x)").exit_code == 0
    commit(detached)
    text = (detached / KERNEL).read_text()
    assert "tx * _sigmoid(tx)" in text
    mine = "tx * (1.0 - 2.0 / (ct.exp(2.0 * tx) + 1.0))"
    (detached / KERNEL).write_text(text.replace("tx * _sigmoid(tx)", mine))
    commit(detached)
    result = tilewright("detach", "swish", "kernel", "--undo")
    assert result.exit_code == 1
    assert f"  owner:        tout = {mine}\n  template:     tout = tx * ct.tanh(tx)\n" in result.stderr
    before = git(detached, "show", f"HEAD:{KERNEL}")
    assert tilewright("update", "--abort").exit_code == 0
    assert (detached / KERNEL).read_text() == before
    assert (detached / RECORD).exists()
    assert git(detached, "status", "--porcelain") == ""


def test_a_package_that_was_renamed_since_is_no_conflict(tilewright, detached, pristine):
    git(detached, "mv", "my_ops", "your_ops")
    kernel = detached / KERNEL.replace("my_ops", "your_ops")
    for path in (kernel, detached / ".tilewright/host.yml", *(detached / ".tilewright/ops").glob("*.yml")):
        path.write_text(path.read_text().replace("my_ops", "your_ops"))
    commit(detached)
    result = tilewright("detach", "swish", "kernel", "--undo")
    assert result.exit_code == 0, result.output
    answers = {"op": "swish", "formula": "x * sigmoid(x)", "package": "your_ops"}
    assert kernel.read_bytes() == kernel_made_with(pristine[0], detached, **answers) + b"# mine\n"


def test_a_record_of_an_earlier_tilewright_names_only_the_version(tilewright, detached, pristine):
    (detached / RECORD).write_text(f"kernel: v{own_version()}\ntests: v{own_version()}\n")
    commit(detached)
    result = tilewright("detach", "swish", "kernel", "--undo")
    assert result.exit_code == 0, result.output
    assert (detached / KERNEL).read_text().startswith(NEW_WORDS)
    assert (detached / KERNEL).read_text().endswith("# mine\n")
    assert (detached / RECORD).read_text().endswith(f"\ntests: v{own_version()}\n")
    assert "swish: left alone, since it is yours: tests" in result.stderr


def test_right_after_the_detachment_all_is_as_it_was(tilewright, host):
    tilewright("detach", "swish", "kernel", "tests")
    result = tilewright("detach", "swish", "kernel", "tests", "--undo")
    assert result.exit_code == 0
    assert result.stderr.startswith("swish: no longer detached: kernel, tests\nNext: ")
    assert git(host, "status", "--porcelain", "--ignored") == ""


def test_detached_again_it_still_has_the_version_it_was_made_from(tilewright, detached):
    before = (detached / RECORD).read_text()
    assert tilewright("detach", "swish", "kernel").exit_code == 0
    assert (detached / RECORD).read_text() == before


def test_from_then_on_it_is_updated_like_the_others(tilewright, host):
    tilewright("detach", "swish", "kernel")
    tilewright("detach", "swish", "kernel", "--undo")
    assert tilewright("update", "--all").exit_code == 0
    assert (host / KERNEL).read_text().startswith(NEW_WORDS)


def test_nothing_is_written_with_dry_run_diff_or_check(tilewright, detached):
    before = contents(detached)
    assert tilewright("detach", "swish", "kernel", "--undo", "--dry-run").exit_code == 0
    assert tilewright("detach", "swish", "kernel", "--undo", "--check").exit_code == 1
    result = tilewright("detach", "swish", "kernel", "--undo", "--diff", "--json")
    document = json.loads(result.stdout)
    assert {(file["path"], file["kind"]) for file in document["files"]} == {(KERNEL, "change"), (RECORD, "remove")}
    assert f"+{NEW_WORDS}" in document["diff"]
    assert document["written"] is False
    assert contents(detached) == before


def test_an_edit_that_is_not_committed_is_refused(tilewright, detached):
    with (detached / KERNEL).open("a") as file:
        file.write("# more\n")
    before = contents(detached)
    result = tilewright("detach", "swish", "kernel", "--undo")
    assert result.exit_code == 2
    assert f"{KERNEL}: not as committed" in result.stderr
    assert contents(detached) == before


def test_a_step_that_is_not_detached_is_refused(tilewright, detached):
    result = tilewright("detach", "swish", "tests", "--undo")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: 'tests' of swish is not detached\nexpected one of kernel\nto see what is: tilewright status\n"
    )
