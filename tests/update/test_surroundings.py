"""Repositories of every kind: each works, or says in three lines what to do and is left as it was."""

import shutil

import pytest

from tests.support.releases import NEXT
from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import git

KERNEL = "my_ops/swish/cutile.py"
NEW_WORDS = '"""The cuTile kernel of'
RECORD = ".tilewright/ops/swish.yml"


def updated(tilewright, root, monkeypatch):
    """Update the operators of a host, which must work and be staged."""
    monkeypatch.chdir(root)
    result = tilewright("update", "--all")
    assert result.exit_code == 0, result.output
    assert (root / KERNEL).read_text().startswith(NEW_WORDS)
    assert git(root, "diff", "--cached", "--name-only", "--relative").splitlines().count(KERNEL) == 1
    assert git(root, "status", "--porcelain", "--untracked-files=all").count("??") == 0


def refused(tilewright, root, message, code=2):
    """Updating is refused in three lines, and nothing is changed."""
    before = contents(root)
    result = tilewright("update", "--all")
    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert 2 <= result.stderr.count("\n") <= 3
    assert contents(root) == before
    assert not (root / ".tilewright/.update").exists()


def test_a_detached_head_works(tilewright, host, monkeypatch):
    git(host, "checkout", "-q", "--detach")
    updated(tilewright, host, monkeypatch)


def test_a_folder_of_a_larger_repository_works(tilewright, host, tmp_path, monkeypatch):
    whole = tmp_path / "whole"
    shutil.rmtree(host / ".git")
    shutil.copytree(host, whole / "libs" / "ops")
    (whole / "README").write_text("")
    commit(whole)
    (whole / "README").write_text("dirty")
    updated(tilewright, whole / "libs" / "ops", monkeypatch)
    assert tilewright("update", "--abort").exit_code == 2


def test_a_dirty_file_in_a_folder_of_a_larger_repository_is_named_from_there(tilewright, host, tmp_path, monkeypatch):
    shutil.rmtree(host / ".git")
    root = shutil.copytree(host, tmp_path / "whole" / "ops")
    commit(tmp_path / "whole")
    (root / KERNEL).write_text("mine\n")
    monkeypatch.chdir(root)
    refused(tilewright, root, f"error: {KERNEL}: not as committed")


def test_conflicts_in_a_folder_of_a_larger_repository_can_be_taken_back(tilewright, host, tmp_path, monkeypatch):
    whole = tmp_path / "whole"
    shutil.rmtree(host / ".git")
    root = shutil.copytree(host, whole / "ops")
    (root / KERNEL).write_text('"""Mine."""\n' + (root / KERNEL).read_text().split("\n", 1)[1])
    commit(whole)
    before = contents(whole)
    monkeypatch.chdir(root)
    assert tilewright("update", "--all").exit_code == 1
    assert f"UU ops/{KERNEL}" in git(whole, "status", "--porcelain").splitlines()
    assert tilewright("update", "--abort").exit_code == 0
    assert contents(whole) == before
    assert git(whole, "status", "--porcelain", "--ignored") == ""


def test_a_repository_of_long_names_works(tilewright, host):
    shutil.rmtree(host / ".git")
    git(host, "init", "-q", "--object-format=sha256")
    (host / KERNEL).write_text('"""Mine."""\n' + (host / KERNEL).read_text().split("\n", 1)[1])
    commit(host)
    assert tilewright("update", "--all").exit_code == 1
    assert f"UU {KERNEL}" in git(host, "status", "--porcelain").splitlines()
    assert tilewright("update", "--abort").exit_code == 0
    assert git(host, "status", "--porcelain", "--ignored") == ""


def test_a_work_tree_works(tilewright, host, tmp_path, monkeypatch):
    git(host, "worktree", "add", "-q", str(tmp_path / "tree"))
    updated(tilewright, tmp_path / "tree", monkeypatch)
    assert git(host, "status", "--porcelain") == ""


def test_a_submodule_works(tilewright, host, tmp_path, monkeypatch):
    whole = tmp_path / "whole"
    whole.mkdir()
    (whole / "README").write_text("")
    commit(whole)
    git(whole, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(host), "ops")
    commit(whole)
    updated(tilewright, whole / "ops", monkeypatch)


def test_files_that_git_ignores_are_updated_and_not_added(tilewright, host):
    (host / ".gitignore").write_text("my_ops/swish/\n__pycache__/\n")
    git(host, "rm", "-rq", "--cached", "my_ops/swish")
    commit(host)
    assert tilewright("update", "--all").exit_code == 0
    assert (host / KERNEL).read_text().startswith(NEW_WORDS)
    assert KERNEL not in git(host, "diff", "--cached", "--name-only")


def test_unusual_paths_work(tilewright, host, tmp_path, monkeypatch):
    root = shutil.copytree(host, tmp_path / "höst of 'Ada' é", symlinks=True)
    (tmp_path / "link").symlink_to(root)
    updated(tilewright, tmp_path / "link", monkeypatch)


def test_line_ends_of_windows_in_the_whole_work_tree_work(tilewright, host, monkeypatch):
    git(host, "config", "core.autocrlf", "true")
    for path in ("my_ops", "tests", ".tilewright/ops"):
        shutil.rmtree(host / path)
    git(host, "checkout", "-q", ".")
    assert b"\r\n" in (host / KERNEL).read_bytes()
    assert b"\r\n" in (host / RECORD).read_bytes()
    updated(tilewright, host, monkeypatch)
    assert b"\r" not in git(host, "show", f":{KERNEL}").encode()
    content = (host / KERNEL).read_bytes()
    assert content.count(b"\n") == content.count(b"\r\n")


def test_a_split_index_works(tilewright, host, monkeypatch):
    git(host, "config", "core.splitIndex", "true")
    git(host, "update-index", "--split-index")
    updated(tilewright, host, monkeypatch)


def test_a_sparse_checkout_is_refused(tilewright, host):
    git(host, "status")
    git(host, "sparse-checkout", "set", "--no-cone", "/*", "!/my_ops/swish/")
    assert not (host / KERNEL).exists()
    refused(tilewright, host, "not checked out, since this is a sparse checkout")


def test_a_repository_that_git_cannot_use_is_not_taken_for_none(tilewright, host):
    shutil.rmtree(host / ".git")
    (host / ".git").write_text("gitdir: /nowhere\n")
    refused(tilewright, host, "git cannot use the repository")


def test_a_damaged_repository_is_refused(tilewright, host):
    (host / ".git/index").write_text("damaged")
    refused(tilewright, host, "git status failed: fatal: .git/index")


def test_settings_of_hooks_do_not_lead_to_another_repository(tilewright, host, monkeypatch):
    with monkeypatch.context() as hook:
        for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
            hook.setenv(name, "/nowhere")
        assert tilewright("update", "--all").exit_code == 0
    assert KERNEL in git(host, "diff", "--cached", "--name-only")


@pytest.mark.parametrize(("folder", "what"), [("rebase-merge", "rebase"), ("rebase-apply", "rebase")])
def test_a_rebase_in_progress_is_refused(tilewright, host, folder, what):
    (host / ".git" / folder).mkdir()
    refused(tilewright, host, f"a {what} is in progress")


@pytest.mark.parametrize("command", ["cherry-pick", "revert"])
def test_a_command_that_stopped_at_a_conflict_is_refused(tilewright, host, command):
    head = git(host, "rev-parse", "HEAD")
    (host / ".git" / f"{command.upper().replace('-', '_')}_HEAD").write_text(head)
    refused(tilewright, host, f"a {command} is in progress")


def test_a_renamed_package_is_refused_until_the_records_have_its_name(tilewright, host, monkeypatch):
    git(host, "mv", "my_ops", "your_ops")
    profile, records = host / ".tilewright/host.yml", sorted((host / ".tilewright/ops").glob("*.yml"))
    profile.write_text(profile.read_text().replace("my_ops", "your_ops"))
    commit(host)
    refused(tilewright, host, "swish.yml has the package my_ops, and the repository your_ops")
    for record in records:
        record.write_text(record.read_text().replace("package: my_ops", "package: your_ops"))
    commit(host)
    assert tilewright("update", "--all").exit_code == 0
    assert (host / "your_ops/swish/cutile.py").read_text().startswith(NEW_WORDS)


def test_an_operator_whose_files_are_gone_is_named(tilewright, host):
    git(host, "rm", "-rq", "my_ops/swish", "tests/ops/test_swish.py", "tests/benchmark/bench_swish.py")
    git(host, "rm", "-q", "tests/benchmark/bench_total.py")
    commit(host)
    result = tilewright("update", "--all")
    assert result.exit_code == 0
    assert "swish: its files are gone, and no update brings them back" in result.stderr
    assert "total: its files are gone" not in result.stderr


def test_a_repository_without_commits_is_refused(tilewright, host):
    shutil.rmtree(host / ".git")
    git(host, "init", "-q")
    refused(tilewright, host, "not as committed")


def test_a_merge_in_progress_is_refused(tilewright, host):
    git(host, "checkout", "-q", "-b", "other")
    (host / "notes.txt").write_text("theirs")
    commit(host)
    git(host, "checkout", "-q", "main")
    (host / "more.txt").write_text("mine")
    commit(host)
    git(host, "merge", "--no-commit", "--no-ff", "other")
    refused(tilewright, host, "a merge is in progress")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("_commit: v", "_commit: v100.", "newer than v99.0.0"),
        ("_commit: v", "commit: v", "does not say which version"),
        ("op: swish", "op: swoosh", "does not record the operator swish"),
        ("op: swish", "op: [swish", "is not YAML"),
        ("family: elementwise", "family: softmacks", "softmacks"),
        ("layout: standalone", "layout: tilegym", "has the layout tilegym, and the repository standalone"),
        ("dtypes:\n- float32\n- float16\n- bfloat16\n", "dtypes: float32\n", "swish.yml: Not a YAML list: 'float32'"),
    ],
)
def test_a_record_that_cannot_be_used_is_refused(tilewright, host, old, new, message):
    text = (host / RECORD).read_text()
    assert old in text
    (host / RECORD).write_text(text.replace(old, new))
    commit(host)
    refused(tilewright, host, message)


def test_a_version_that_nobody_has_is_refused(tilewright, host):
    (host / RECORD).write_text((host / RECORD).read_text().replace("_commit: v", "_commit: v0.0."))
    commit(host)
    refused(tilewright, host, "neither in tilewright", code=3)


def test_a_link_in_the_place_of_a_file_is_refused(tilewright, host):
    (host / "kernel.py").write_text("mine\n")
    (host / KERNEL).unlink()
    (host / KERNEL).symlink_to("../../kernel.py")
    commit(host)
    refused(tilewright, host, "is a link or a folder")


def test_a_template_source_that_is_gone_is_not_needed_for_a_released_version(tilewright, host, monkeypatch):
    for path in (host / ".tilewright/ops").glob("*.yml"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join("_src_path: /gone\n" if line.startswith("_src_path") else line for line in lines))
    commit(host)
    updated(tilewright, host, monkeypatch)
    assert "_src_path: /gone\n" in (host / RECORD).read_text()


def test_without_git_what_the_owner_did_not_edit_is_updated(tilewright, host, monkeypatch, tmp_path):
    (tmp_path / "releases").mkdir()
    monkeypatch.setattr("tilewright.update.templates.RELEASES", tmp_path / "releases")
    from tests.support.releases import own_version
    from tilewright.render import locate
    from tilewright.update.pack import pack

    version = f"v{own_version()}"
    (tmp_path / "releases" / f"{version}.tar.xz").write_bytes(pack(locate().root, version))
    monkeypatch.setenv("PATH", "")
    assert tilewright("update", "--all").exit_code == 0
    assert f"_commit: v{NEXT}" in (host / RECORD).read_text()
