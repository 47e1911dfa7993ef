"""Changes land together or not at all, whatever happens in between."""

import errno
import os
import stat
from pathlib import Path
from pathlib import PurePosixPath

import pytest

from tilewright.changes import apply
from tilewright.changes import apply_planned
from tilewright.changes import recover
from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange


def change(path: str, before: str | None, after: str | None) -> FileChange:
    encode = lambda text: None if text is None else text.encode()
    return FileChange(path=PurePosixPath(path), before=encode(before), after=encode(after))


def tree(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "kept.py").write_text("old\n")
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "gone.py").write_text("bye\n")
    return tmp_path


@pytest.fixture
def changes(host: Path) -> ChangeSet:
    return ChangeSet(
        root=host,
        changes=(
            change("a/b/new.py", None, "new\n"),
            change("kept.py", "old\n", "changed\n"),
            change("gone/gone.py", "bye\n", None),
        ),
    )


BEFORE = {"gone/gone.py": "bye\n", "kept.py": "old\n"}
AFTER = {"a/b/new.py": "new\n", "kept.py": "changed\n"}


def test_changes_are_written_and_nothing_else(changes):
    apply(changes)
    assert tree(changes.root) == AFTER
    assert sorted(path.name for path in changes.root.iterdir()) == ["a", "kept.py"]


def test_a_changed_file_keeps_its_mode(changes):
    os.chmod(changes.root / "kept.py", 0o755)
    apply(changes)
    assert stat.S_IMODE((changes.root / "kept.py").stat().st_mode) == 0o755


def test_the_cache_of_a_removed_module_goes_with_it(changes):
    cache = changes.root / "gone" / "__pycache__"
    cache.mkdir()
    (cache / "gone.cpython-311.pyc").touch()
    apply(changes)
    assert not cache.parent.exists()


@pytest.mark.parametrize("path", ["kept.py", "a/b/new.py", "gone/gone.py"])
def test_an_edit_since_the_plan_is_never_overwritten(changes, path):
    (changes.root / path).parent.mkdir(parents=True, exist_ok=True)
    (changes.root / path).write_text("mine\n")
    before = tree(changes.root)
    with pytest.raises(UsageError, match="not what it was"):
        apply(changes)
    assert tree(changes.root) == before


def test_a_folder_in_the_place_of_a_file_is_refused(host):
    with pytest.raises(UsageError, match="not what it was"):
        apply(ChangeSet(root=host, changes=(change("gone", None, "x"),)))


def test_a_file_in_the_place_of_a_folder_is_refused(host):
    with pytest.raises(UsageError, match="cannot be written"):
        apply(ChangeSet(root=host, changes=(change("kept.py/x.py", None, "x"),)))
    assert tree(host) == BEFORE


def test_a_host_that_is_a_file_is_refused(host):
    with pytest.raises(UsageError, match="cannot be written"):
        apply(ChangeSet(root=host / "kept.py", changes=(change("x.py", None, "x"),)))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_host_is_refused(host, changes):
    host.chmod(0o555)
    with pytest.raises(UsageError, match="cannot be written"):
        apply(changes)
    host.chmod(0o755)
    assert tree(host) == BEFORE


def test_a_new_host_folder_goes_away_when_planning_fails(tmp_path):
    def plan() -> ChangeSet:
        raise UsageError("no")

    with pytest.raises(UsageError, match="no"):
        apply_planned(tmp_path / "new_host", plan)
    assert not (tmp_path / "new_host").exists()


def test_a_disk_error_half_way_takes_everything_back(changes, monkeypatch):
    replace = os.replace

    def full(source, target):
        if str(target).endswith("kept.py") and not str(source).endswith(".old"):
            raise OSError(28, "No space left on device", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        apply(changes)
    assert tree(changes.root) == BEFORE


STEPS = ["mkdir", "write_bytes", "write_text", "unlink", "rmdir"]  # of a path; and os.replace


def killed(changes: ChangeSet, at: int, *, before: bool) -> bool:
    """Apply in a child that dies at its n-th write to the file system; whether it came that far."""
    child = os.fork()
    if child == 0:
        count = 0

        def dying(function):
            def step(*args, **kwargs):
                nonlocal count
                count += 1
                if count == at and before:
                    os._exit(9)
                result = function(*args, **kwargs)
                if count == at:
                    os._exit(9)
                return result

            return step

        for name in STEPS:
            setattr(Path, name, dying(getattr(Path, name)))
        os.replace = dying(os.replace)
        try:
            apply(changes)
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9)
    return status == 9


@pytest.mark.parametrize("before", [True, False], ids=["before_the_step", "after_the_step"])
@pytest.mark.parametrize("at", range(1, 40))
def test_a_kill_at_any_step_leaves_all_or_nothing(changes, at, before):
    reached = killed(changes, at, before=before)
    recover(changes.root)
    found = tree(changes.root)
    assert found in (BEFORE, AFTER)
    assert reached or found == AFTER
    assert not (changes.root / ".tilewright" / ".journal").exists()


def test_the_kill_test_reaches_every_step(changes):
    assert killed(changes, 5, before=True)
    recover(changes.root)
    assert not killed(changes, 40, before=True)


def kill_before_the_first_move(changes: ChangeSet) -> None:
    child = os.fork()
    if child == 0:
        replace = os.replace
        os.replace = lambda source, target: (
            replace(source, target) if str(target).endswith("changes.json") else os._exit(9)
        )
        apply(changes)
    os.waitpid(child, 0)


def test_the_next_command_finishes_before_it_plans(changes):
    kill_before_the_first_move(changes)
    seen = []

    def plan() -> ChangeSet:
        seen.append({path: text for path, text in tree(changes.root).items() if not path.startswith(".tilewright")})
        return ChangeSet(root=changes.root)

    apply_planned(changes.root, plan)
    assert seen == [AFTER]


def test_an_edit_after_the_kill_is_not_overwritten(changes):
    kill_before_the_first_move(changes)
    (changes.root / "kept.py").write_text("mine\n")
    with pytest.raises(UsageError, match="was edited after") as error:
        recover(changes.root)
    assert "rm -r" in str(error.value)
    assert (changes.root / "kept.py").read_text() == "mine\n"
    (changes.root / "kept.py").write_text("old\n")
    recover(changes.root)
    assert tree(changes.root) == AFTER


def test_a_folder_that_another_command_removes_meanwhile_is_made_again(changes, monkeypatch):
    """`mkdir` finds it, and when it looks whether that is a folder, it is gone."""
    mkdir, calls = Path.mkdir, []

    def refuse_once(path, *args, **kwargs):
        calls.append(path)
        if len(calls) == 1:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        mkdir(path, *args, **kwargs)

    monkeypatch.setattr(Path, "mkdir", refuse_once)
    apply(changes)
    assert tree(changes.root) == AFTER


def test_two_commands_at_once_plan_one_after_the_other(host):
    """Every child appends its line to what it finds, so a lost update would lose a line."""
    children = []
    for number in range(6):
        child = os.fork()
        if child == 0:

            def plan(number=number) -> ChangeSet:
                text = (host / "kept.py").read_text()
                return ChangeSet(root=host, changes=(change("kept.py", text, f"{text}{number}\n"),))

            try:
                apply_planned(host, plan)
            except BaseException:
                os._exit(1)
            os._exit(0)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 6
    assert sorted((host / "kept.py").read_text().split()) == ["0", "1", "2", "3", "4", "5", "old"]
    assert not (host / ".tilewright").exists()


def test_a_reading_command_does_not_wait_for_a_writing_one(host):
    def plan() -> ChangeSet:
        recover(host)
        return ChangeSet(root=host)

    apply_planned(host, plan)


def test_where_no_open_file_can_be_removed_nothing_is_left_behind(changes, monkeypatch):
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if str(path) in map(os.path.realpath, Path("/proc/self/fd").iterdir()):
            raise PermissionError(32, "The process cannot access the file", str(path))  # as Windows says
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr("tilewright.changes.lock.fcntl", None)
    apply(changes)
    assert tree(changes.root) == AFTER
    assert not (changes.root / ".tilewright").exists()
