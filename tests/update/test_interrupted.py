"""An update that is killed at any moment can be continued and taken back."""

import os
import shutil
import signal
from dataclasses import replace

import pytest

from tests.support.kills import count_calls
from tests.support.kills import run_and_kill
from tests.support.releases import NEXT
from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import git
from tilewright.changes import recover
from tilewright.config import find_host
from tilewright.errors import UsageError
from tilewright.update import abort
from tilewright.update import carry_out
from tilewright.update import continue_
from tilewright.update import plan_update
from tilewright.update import progress
from tilewright.update.repository import Repository

KERNEL = "my_ops/swish/cutile.py"


@pytest.fixture(scope="module")
def planned(pristine, tmp_path_factory):
    """A host with an edit that conflicts and one that does not, and the plan of its update."""
    source, made = pristine
    root = shutil.copytree(made, tmp_path_factory.mktemp("planned") / "host")
    _, rest = (root / KERNEL).read_text().split("\n", 1)
    (root / KERNEL).write_text(f'"""Mine."""\n{rest}# mine\n')
    commit(root)
    return root, plan_update(find_host(root), source, ["swish", "total"])


@pytest.fixture(scope="module")
def moments(planned, tmp_path_factory):
    """How many moments there are at which a kill may come."""
    _, plan = copied(planned, tmp_path_factory.mktemp("counted") / "host")
    return count_calls(lambda: carry_out(plan))


def copied(planned, target):
    root, plan = planned
    shutil.copytree(root, target)
    return target, replace(plan, changes=replace(plan.changes, root=target))


def kill_then(way, planned, target, call):
    """Kill an update, then go on or back; returns what the files were and are."""
    root, plan = copied(planned, target)
    before = contents(root)
    assert run_and_kill(lambda: carry_out(plan), call)
    recover(root)  # as every command does first
    begun = progress.read(root)
    if begun is None:  # killed before the first step
        with pytest.raises(UsageError, match="no update is in progress"):
            way(root)
        carry_out(plan)
        way = continue_
    elif begun.written and way is continue_:  # killed after the last one
        with pytest.raises(UsageError, match="not settled"):
            way(root)
    else:
        way(root)
    after = contents(root)
    if way is continue_:
        assert b"<<<<<<< owner\n" in after[KERNEL]
        assert f"UU {KERNEL}" in git(root, "status", "--porcelain").splitlines()
        abort(root)
    assert contents(root) == before
    assert git(root, "status", "--porcelain", "--ignored") == ""
    shutil.rmtree(root)


@pytest.mark.parametrize("way", [continue_, abort])
def test_after_a_kill_there_is_a_way_on_and_a_way_back(planned, moments, tmp_path, way):
    assert moments > 30
    for part in range(5):
        kill_then(way, planned, tmp_path / "host", 1 + part * (moments - 1) // 4)


@pytest.mark.slow
@pytest.mark.parametrize("way", [continue_, abort])
def test_that_is_so_for_every_moment(planned, moments, tmp_path, way):
    for call in range(1, moments + 1):
        kill_then(way, planned, tmp_path / "host", call)


def test_a_way_back_that_is_killed_can_be_gone_again(planned, tmp_path):
    root, plan = copied(planned, tmp_path / "host")
    before = contents(root)
    carry_out(plan)
    for call in (3, 9, 15):
        assert run_and_kill(lambda: abort(root), call)
        recover(root)
    abort(root)
    assert contents(root) == before
    assert git(root, "status", "--porcelain", "--ignored") == ""


def test_an_edit_after_the_kill_is_not_overwritten(planned, moments, tmp_path):
    root, plan = copied(planned, tmp_path / "host")
    assert run_and_kill(lambda: carry_out(plan), moments * 3 // 4)
    recover(root)
    (root / "my_ops/total/cutile.py").write_text("an hour of work\n")
    with pytest.raises(UsageError, match="edited after the update was killed"):
        continue_(root)
    assert [str(path) for path in abort(root)] == ["my_ops/total/cutile.py.edited"]
    assert (root / "my_ops/total/cutile.py.edited").read_text() == "an hour of work\n"


def test_nothing_begins_while_another_git_command_holds_the_index(planned, tmp_path):
    root, plan = copied(planned, tmp_path / "host")
    (root / ".git" / "index.lock").touch()
    before = contents(root)
    with pytest.raises(UsageError, match=r"index\.lock is there.*another git command") as caught:
        carry_out(plan)
    assert str(caught.value).count("\n") == 2
    assert contents(root) == before


def test_nothing_begins_where_the_index_cannot_be_written(planned, tmp_path, monkeypatch):
    root, plan = copied(planned, tmp_path / "host")
    before = contents(root)
    monkeypatch.setattr(os, "access", lambda path, _: path != root / ".git")
    with pytest.raises(UsageError, match=r"\.git cannot be written"):
        carry_out(plan)
    assert contents(root) == before


def test_a_lock_that_another_git_command_takes_meanwhile_is_left_alone(planned, tmp_path, monkeypatch):
    root, plan = copied(planned, tmp_path / "host")
    lock = root / ".git" / "index.lock"
    monkeypatch.setattr(Repository, "refuse_if_locked", lambda self: lock.touch())
    with pytest.raises(UsageError, match=r"index\.lock is there") as caught:
        carry_out(plan)
    assert str(caught.value).count("\n") == 2
    assert lock.read_text() == ""
    lock.unlink()
    continue_(root)
    assert f"UU {KERNEL}" in git(root, "status", "--porcelain").splitlines()


@pytest.mark.parametrize("way", [continue_, abort])
def test_the_lock_of_a_killed_update_is_known_as_its_own(planned, tmp_path, way):
    root, plan = copied(planned, tmp_path / "host")

    def die_before_the_index_takes_its_place():
        replace_ = os.replace
        dying = lambda source, target: (
            os.kill(os.getpid(), signal.SIGKILL) if str(source).endswith("index.lock") else replace_(source, target)
        )
        os.replace = dying
        carry_out(plan)

    assert run_and_kill(die_before_the_index_takes_its_place, call=0)
    assert (root / ".git" / "index.lock").exists()
    recover(root)
    way(root)
    assert not (root / ".git" / "index.lock").exists()
    assert (f"UU {KERNEL}" in git(root, "status", "--porcelain").splitlines()) == (way is continue_)


def test_what_another_git_command_stages_meanwhile_stays_staged(planned, tmp_path, monkeypatch):
    root, plan = copied(planned, tmp_path / "host")
    original, times = Repository._write, []

    def write(self, *arguments):
        original(self, *arguments)
        if not times:
            (root / "notes.txt").write_text("mine")
            git(root, "add", "notes.txt")
        times.append(1)

    monkeypatch.setattr(Repository, "_write", write)
    carry_out(plan)
    assert len(times) == 2
    assert {"A  notes.txt", f"UU {KERNEL}"} <= set(git(root, "status", "--porcelain").splitlines())


def test_a_full_disk_takes_everything_back(planned, tmp_path, monkeypatch):
    root, plan = copied(planned, tmp_path / "host")
    before, replace_ = contents(root), os.replace

    def full(source, target):
        if str(target).endswith("total/cutile.py") and not str(source).endswith(".old"):
            raise OSError(28, "No space left on device", str(target))
        replace_(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        carry_out(plan)
    assert contents(root) == before
    assert git(root, "status", "--porcelain", "--ignored") == ""


def test_two_at_once_do_not_mix(tilewright, host):
    before = contents(host)
    with progress.exclusive(host):
        result = tilewright("update", "--all")
        assert result.exit_code == 2
        assert "another tilewright update is at work" in result.stderr
        assert result.stderr.count("\n") == 3
    assert contents(host) == before


def test_a_file_that_changed_since_it_was_planned_is_not_overwritten(planned, tmp_path):
    root, plan = copied(planned, tmp_path / "host")
    (root / KERNEL).write_text("an hour of work\n")
    commit(root)
    before = contents(root)
    with pytest.raises(UsageError, match="not what it was when the change was planned"):
        carry_out(plan)
    assert contents(root) == before
    assert f"_commit: v{NEXT}" not in (root / ".tilewright/ops/swish.yml").read_text()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_cannot_be_written_is_refused(planned, tmp_path):
    root, plan = copied(planned, tmp_path / "host")
    before = contents(root)
    (root / KERNEL).chmod(0o444)
    with pytest.raises(UsageError, match="cannot be written"):
        carry_out(plan)
    assert contents(root) == before
