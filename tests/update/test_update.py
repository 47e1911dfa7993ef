"""`tilewright update` moves operators to the newer template and keeps every edit."""

import json
import os

import pytest

from tests.support.releases import NEXT
from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import git
from tests.support.releases import own_version

KERNEL = "my_ops/swish/cutile.py"
NEW_WORDS = '"""The cuTile kernel of'


def edit(host, path, old, new, *, committed=True):
    text = (host / path).read_text()
    assert old in text
    (host / path).write_text(text.replace(old, new, 1))
    if committed:
        commit(host, "Edit")


def append(host, path, text):
    with (host / path).open("a") as file:
        file.write(text)
    commit(host, "Edit")


def test_every_operator_moves_and_the_changes_are_staged(tilewright, host):
    result = tilewright("update", "--all")
    assert result.exit_code == 0, result.output
    for op in ("swish", "total"):
        assert (host / f"my_ops/{op}/cutile.py").read_text().startswith(NEW_WORDS)
        assert f"_commit: v{NEXT}" in (host / f".tilewright/ops/{op}.yml").read_text()
    status = git(host, "status", "--porcelain").splitlines()
    assert status
    assert all(line.startswith("M  ") for line in status)


def test_one_operator_moves_and_the_other_stays(tilewright, host):
    before = contents(host)
    assert tilewright("update", "swish").exit_code == 0
    changed = {path for path, content in contents(host).items() if before.get(path) != content}
    assert changed == {KERNEL, "my_ops/swish/interface.py", ".tilewright/ops/swish.yml"}


def test_an_edit_elsewhere_in_the_file_is_kept(tilewright, host):
    append(host, KERNEL, "# mine\n")
    assert tilewright("update", "--all").exit_code == 0
    text = (host / KERNEL).read_text()
    assert text.startswith(NEW_WORDS)
    assert text.endswith("# mine\n")


def test_again_there_is_nothing_to_do(tilewright, host):
    tilewright("update", "--all")
    commit(host)
    result = tilewright("update", "--all")
    assert result.exit_code == 0
    assert f"Nothing to do: 2 operators are at v{NEXT}." in result.stderr
    assert json.loads(tilewright("update", "--all", "--json").stdout)["written"] is False
    assert git(host, "status", "--porcelain", "--ignored") == ""


def test_files_that_the_update_does_not_touch_may_be_dirty(tilewright, host):
    (host / "notes.txt").write_text("mine")
    edit(host, "tests/ops/test_swish.py", "import", "import", committed=False)
    (host / "tests/ops/test_swish.py").write_text((host / "tests/ops/test_swish.py").read_text() + "# mine\n")
    assert tilewright("update", "--all").exit_code == 0
    assert (host / "tests/ops/test_swish.py").read_text().endswith("# mine\n")
    lines = git(host, "status", "--porcelain").splitlines()
    assert " M tests/ops/test_swish.py" in lines
    assert "?? notes.txt" in lines


@pytest.mark.parametrize("staged", [False, True])
def test_a_dirty_file_that_the_update_must_touch_is_refused(tilewright, host, staged):
    edit(host, KERNEL, "import", "import  ", committed=False)
    if staged:
        git(host, "add", "-A")
    before = contents(host)
    result = tilewright("update", "--all")
    assert result.exit_code == 2
    assert f"error: {KERNEL}: not as committed" in result.stderr
    assert result.stderr.count("\n") == 3
    assert contents(host) == before


def test_an_operator_that_was_never_committed_is_refused(tilewright, host):
    git(host, "rm", "-rq", "--cached", "my_ops/swish")
    before = contents(host)
    result = tilewright("update", "swish")
    assert result.exit_code == 2
    assert "not as committed" in result.stderr
    assert contents(host) == before


def test_removed_files_stay_removed(tilewright, host):
    git(host, "rm", "-q", KERNEL)
    commit(host)
    assert tilewright("update", "--all").exit_code == 0
    assert not (host / KERNEL).exists()


def test_nothing_is_written_with_dry_run_or_diff(tilewright, host):
    before = contents(host)
    assert tilewright("update", "--all", "--dry-run").exit_code == 0
    result = tilewright("update", "swish", "--diff")
    assert f"+{NEW_WORDS}" in result.stdout
    assert contents(host) == before
    assert git(host, "status", "--porcelain", "--ignored") == ""


def test_the_document_says_what_was_done(tilewright, host):
    append(host, KERNEL, "# mine\n")
    document = json.loads(tilewright("update", "--all", "--json").stdout)
    assert document["operators"][0] == {
        "name": "swish",
        "from": f"v{own_version()}",
        "to": f"v{NEXT}",
        "answers": {},
        "detached": [],
    }
    assert {"path": KERNEL, "kind": "change"} in document["files"]
    assert document["conflicts"] == []
    assert document["written"] is True


def test_to_a_version_that_is_older_is_refused(tilewright, host):
    result = tilewright("update", "--all", "--to", "v0.0.1")
    assert result.exit_code == 2
    assert "there is no way back" in result.stderr
    assert f"leave out --to, or give it v{own_version()} or a newer one" in result.stderr
    assert "install a newer tilewright" not in result.stderr


@pytest.mark.parametrize("version", [NEXT, f"v{NEXT}"])
def test_a_version_can_be_named_with_and_without_its_letter(tilewright, host, version):
    result = tilewright("update", "--all", "--to", version)
    assert f"-> v{NEXT}\n" in result.stderr
    assert f"_commit: v{NEXT}\n" in (host / ".tilewright/ops/swish.yml").read_text()
    assert f'git commit -m "Update to template v{NEXT}"' in result.stderr


def test_to_a_version_that_nobody_has_is_refused(tilewright, host):
    result = tilewright("update", "--all", "--to", "98.0.0")
    assert result.exit_code == 3
    assert "the template v98.0.0 is neither in tilewright" in result.stderr
    assert result.stderr.count("\n") == 3


def test_an_unknown_operator_is_refused_with_the_nearest_name(tilewright, host):
    result = tilewright("update", "swich")
    assert result.exit_code == 2
    assert "swish" in result.stderr


def test_without_names_all_must_be_asked_for(tilewright, host):
    result = tilewright("update")
    assert result.exit_code == 2
    assert "--all" in result.stderr


def test_check_says_how_far_behind_the_operators_are(tilewright, host):
    result = tilewright("update", "--check")
    assert result.exit_code == 1
    assert f"swish: v{own_version()} (1 version behind {NEXT})" in result.stdout
    assert "  - Say what the kernel is, in other words." in result.stdout
    tilewright("update", "--all")
    result = tilewright("update", "--check")
    assert result.exit_code == 0
    assert "2 operators up to date" in result.stdout


def test_check_compares_with_the_version_that_is_asked_for(tilewright, host):
    result = tilewright("update", "--check", "--to", own_version())
    assert result.exit_code == 0
    assert "2 operators up to date" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--continue", "--abort"], ["--abort", "swish"], ["--abort", "--all"], ["--continue", "--to", NEXT]),
        *(["--abort", "--dry-run"], ["--abort", "--diff"], ["--continue", "--check"]),
    ],
)
def test_continue_and_abort_take_nothing_else(tilewright, host, arguments):
    result = tilewright("update", *arguments)
    assert result.exit_code == 2
    assert "expected one of them, and no operators or other options" in result.stderr


def test_line_ends_of_windows_are_kept(tilewright, host):
    content = (host / KERNEL).read_bytes().replace(b"\n", b"\r\n") + b"# mine\r\n"
    (host / KERNEL).write_bytes(content)
    commit(host)
    assert tilewright("update", "--all").exit_code == 0
    after = (host / KERNEL).read_bytes()
    assert after.startswith(NEW_WORDS.encode())
    assert after.endswith(b"# mine\r\n")
    assert after.count(b"\n") == after.count(b"\r\n")


def test_a_comment_in_the_record_is_kept(tilewright, host):
    record = ".tilewright/ops/swish.yml"
    (host / record).write_text((host / record).read_text() + "# ask Ada before changing this\n")
    commit(host)
    assert tilewright("update", "--all").exit_code == 0
    assert (host / record).read_text().endswith("# ask Ada before changing this\n")


def test_a_record_that_was_written_in_another_style_does_not_conflict(tilewright, host):
    record = host / ".tilewright/ops/swish.yml"
    lines = record.read_text().splitlines()
    record.write_text("\n".join(f"{line}  # mine" if line.startswith(("_commit", "_src")) else line for line in lines))
    commit(host)
    assert tilewright("update", "--all").exit_code == 0
    assert f"_commit: v{NEXT}" in record.read_text()


def test_the_mode_of_a_file_is_kept(tilewright, host):
    os.chmod(host / KERNEL, 0o755)
    commit(host)
    assert tilewright("update", "--all").exit_code == 0
    assert os.stat(host / KERNEL).st_mode & 0o111 == 0o111
    assert git(host, "diff", "HEAD", "--summary") == ""


def test_status_says_how_far_behind_an_operator_is_and_what_changed_since(tilewright, host):
    lines = [line.strip() for line in tilewright("status").stdout.splitlines()]
    assert lines[1].endswith(f"{own_version()} (1 version behind {NEXT})")
    assert lines[-2:] == [f"changed in {NEXT}:", "- Say what the kernel is, in other words."]
    [operator, _] = json.loads(tilewright("status", "--json").stdout)["operators"]
    assert operator["behind"] == [{"version": NEXT, "entries": ["Say what the kernel is, in other words."]}]


@pytest.mark.parametrize(("first", "second"), [("v100.0.0", "v99.5.0"), ("v99.5.0", "v100.0.0")])
def test_new_warns_where_the_repository_has_operators_of_a_newer_template(tilewright, host, first, second):
    for op, version in (("swish", first), ("total", second)):
        record = host / f".tilewright/ops/{op}.yml"
        record.write_text(record.read_text().replace(f"_commit: v{own_version()}", f"_commit: {version}"))
    result = tilewright("new", "another", "--dry-run")
    assert result.exit_code == 0
    assert f"operators here are of the template v100.0.0, this one will be of v{NEXT}" in result.stderr
