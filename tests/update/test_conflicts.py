"""Where owner and template changed the same, both are shown, and nothing is decided for the owner."""

import json

import pytest

from tests.support.releases import KERNEL as KERNEL_TEMPLATE
from tests.support.releases import NEXT
from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import git

KERNEL = "my_ops/swish/cutile.py"
MINE = '"""My own kernel."""'
THEIRS = '"""The cuTile kernel of swish."""'


@pytest.fixture
def conflicting(host):
    """A host whose owner changed a line that the template changes too."""
    text = (host / KERNEL).read_text()
    _, rest = text.split("\n", 1)
    (host / KERNEL).write_text(f"{MINE}\n{rest}# mine\n")
    commit(host, "Say it in my words")
    return host


def test_both_sides_are_in_the_file_and_in_the_message(tilewright, conflicting):
    result = tilewright("update", "--all")
    assert result.exit_code == 1
    assert f"conflict: {KERNEL}:1\n  owner:    {MINE}\n  template: {THEIRS}\n" in result.stderr
    text = (conflicting / KERNEL).read_text()
    assert text.startswith(f"<<<<<<< owner\n{MINE}\n=======\n{THEIRS}\n>>>>>>> template\n\n")
    assert f"UU {KERNEL}" in git(conflicting, "status", "--porcelain").splitlines()
    assert git(conflicting, "show", f":2:{KERNEL}").startswith(MINE)
    assert git(conflicting, "show", f":3:{KERNEL}").startswith(THEIRS)


def test_what_is_kept_of_an_open_update_is_not_for_git(tilewright, conflicting):
    tilewright("update", "--all")
    assert ".tilewright/.update" not in git(conflicting, "status", "--porcelain", "--untracked-files=all")
    assert "!! .tilewright/.update/" in git(conflicting, "status", "--porcelain", "--ignored").splitlines()


def test_the_document_has_every_hunk(tilewright, conflicting):
    result = tilewright("update", "--all", "--json", "--dry-run")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["conflicts"] == [
        {"path": KERNEL, "hunks": [{"line": 1, "owner": f"{MINE}\n", "template": f"{THEIRS}\n"}]}
    ]
    assert git(conflicting, "status", "--porcelain") == ""


def test_continue_waits_until_the_markers_are_gone(tilewright, conflicting):
    tilewright("update", "--all")
    result = tilewright("update", "--continue")
    assert result.exit_code == 2
    assert f"error: not settled: {KERNEL}" in result.stderr
    text = (conflicting / KERNEL).read_text()
    (conflicting / KERNEL).write_text(f"{THEIRS}\n" + text.split(">>>>>>> template\n")[1])
    result = tilewright("update", "--continue")
    assert result.exit_code == 0
    assert f"The update to v{NEXT} is complete and staged." in result.stderr
    assert f"M  {KERNEL}" in git(conflicting, "status", "--porcelain").splitlines()
    assert git(conflicting, "status", "--porcelain", "--ignored").count("!!") == 0
    assert tilewright("update", "--continue").exit_code == 2


def test_abort_restores_every_byte(tilewright, conflicting):
    before = contents(conflicting)
    (conflicting / "notes.txt").write_text("mine")
    tilewright("update", "--all")
    result = tilewright("update", "--abort")
    assert result.exit_code == 0
    assert contents(conflicting) == before | {"notes.txt": b"mine"}
    assert git(conflicting, "status", "--porcelain", "--ignored") == "?? notes.txt\n"


def test_abort_keeps_what_was_edited_since(tilewright, conflicting):
    before = contents(conflicting)
    tilewright("update", "--all")
    (conflicting / f"{KERNEL}.edited").write_text("of an earlier update\n")
    for path in (KERNEL, "my_ops/total/cutile.py"):
        (conflicting / path).write_text("settled in an hour of work\n")
    result = tilewright("update", "--abort")
    assert f"What you edited since is in {KERNEL}.edited.1" in result.stderr
    edited = b"settled in an hour of work\n"
    assert contents(conflicting) == before | {
        f"{KERNEL}.edited": b"of an earlier update\n",
        f"{KERNEL}.edited.1": edited,
        "my_ops/total/cutile.py.edited": edited,
    }


def test_an_update_that_git_took_back_is_not_complete(tilewright, conflicting):
    tilewright("update", "--all")
    git(conflicting, "reset", "-q", "--hard")
    result = tilewright("update", "--continue")
    assert result.exit_code == 2
    assert "every file is as it was before the update" in result.stderr
    assert tilewright("update", "--abort").exit_code == 0
    assert git(conflicting, "status", "--porcelain", "--ignored") == ""


def test_a_conflict_may_be_settled_by_removing_the_file(tilewright, conflicting):
    tilewright("update", "--all")
    (conflicting / KERNEL).unlink()
    assert tilewright("update", "--continue").exit_code == 0
    assert f"D  {KERNEL}" in git(conflicting, "status", "--porcelain").splitlines()


@pytest.mark.parametrize("option", ["--continue", "--abort"])
@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_an_update_that_cannot_be_read_is_refused(tilewright, conflicting, option, text):
    tilewright("update", "--all")
    (conflicting / ".tilewright/.update/plan.json").write_text(text)
    before = contents(conflicting)
    result = tilewright("update", option)
    assert result.exit_code == 2
    assert "plan.json is not what an update of this tilewright leaves" in result.stderr
    assert result.stderr.count("\n") == 3
    assert contents(conflicting) == before


def test_no_second_update_begins_before_the_first_is_settled(tilewright, conflicting):
    tilewright("update", "--all")
    before = contents(conflicting)
    result = tilewright("update", "total", "--conflict", "ours")
    assert result.exit_code == 2
    assert "an update is in progress" in result.stderr
    assert "tilewright update --abort" in result.stderr
    assert contents(conflicting) == before


@pytest.mark.parametrize(("side", "first"), [("ours", MINE), ("theirs", THEIRS)])
def test_a_side_can_be_taken_for_all_hunks(tilewright, conflicting, side, first):
    result = tilewright("update", "--all", "--conflict", side)
    assert result.exit_code == 0
    text = (conflicting / KERNEL).read_text()
    assert text.startswith(f"{first}\n")
    assert text.endswith("# mine\n")
    assert f"conflict: {KERNEL}:1" in result.stderr
    assert tilewright("update", "--abort").exit_code == 2  # it is complete


def test_the_owners_side_can_be_put_into_a_file_beside(tilewright, conflicting):
    result = tilewright("update", "--all", "--conflict", "rej")
    assert result.exit_code == 1
    assert (conflicting / KERNEL).read_text().startswith(THEIRS)
    reject = conflicting / f"{KERNEL}.rej"
    assert f"-{THEIRS}\n+{MINE}\n" in reject.read_text()
    assert f"?? {KERNEL}.rej" in git(conflicting, "status", "--porcelain").splitlines()
    assert tilewright("update", "--continue").exit_code == 2
    git(conflicting, "apply", "--unidiff-zero", str(reject))
    assert (conflicting / KERNEL).read_text().startswith(MINE)
    reject.unlink()
    assert tilewright("update", "--continue").exit_code == 0


def test_abort_removes_the_file_beside(tilewright, conflicting):
    before = contents(conflicting)
    tilewright("update", "--all", "--conflict", "rej")
    assert tilewright("update", "--abort").exit_code == 0
    assert contents(conflicting) == before


@pytest.fixture
def release_without_kernel(conflicting, pristine, monkeypatch, tmp_path):
    """A release that no longer has a file that the owner edited."""
    import shutil

    from tilewright.render import Source

    source, _ = pristine
    root = shutil.copytree(source.root, tmp_path / "shrunk")
    (root / KERNEL_TEMPLATE).unlink()
    monkeypatch.setattr("tilewright.render.locate", lambda: Source(root=root, recorded=None))
    return conflicting


@pytest.mark.parametrize("side", ["inline", "ours", "rej", "theirs"])
def test_an_edited_file_that_the_template_drops_is_not_lost_unless_told_so(tilewright, release_without_kernel, side):
    host = release_without_kernel
    mine = (host / KERNEL).read_bytes()
    result = tilewright("update", "--all", "--conflict", side)
    assert "template: no longer has it" in result.stderr
    assert result.exit_code == (1 if side in ("inline", "rej") else 0)
    after = contents(host)
    assert (KERNEL in after) == (side in ("inline", "ours"))
    if KERNEL in after:
        assert after[KERNEL] == mine
    if side == "rej":
        assert b"+# mine\n" in after[f"{KERNEL}.rej"]
    assert "my_ops/total/cutile.py" not in after  # never edited


def test_without_a_repository_the_same_is_done_except_for_the_index(tilewright, conflicting):
    import shutil

    shutil.rmtree(conflicting / ".git")
    before = contents(conflicting)
    assert tilewright("update", "--all").exit_code == 1
    assert (conflicting / KERNEL).read_text().startswith("<<<<<<< owner\n")
    assert tilewright("update", "--abort").exit_code == 0
    assert contents(conflicting) == before
