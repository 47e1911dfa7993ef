"""The git repository around a host: what is committed of some files, and its index."""

import os
import shutil
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from pathlib import PurePosixPath
from typing import Self

from tilewright.errors import HostError
from tilewright.errors import UsageError
from tilewright.update import git

_BUSY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}
_ATTEMPTS = 20


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A work tree of git in which the host is; paths are relative to the host."""

    root: Path  # of the host
    top: Path
    prefix: str  # of the host below the top, with a slash at its end

    @classmethod
    def around(cls, root: Path) -> Self | None:
        """The repository, or None where there is none, or no git.

        Raises:
            HostError: There is one, and git cannot use it.
        """
        if not git.is_installed():
            return None
        done = git.run(root, "rev-parse", "--show-toplevel", "--show-prefix", check=False)
        if done.returncode:
            said = done.stderr.decode(errors="replace").partition("\n")[0]
            if "not a git repository (or any" in said:
                return None
            raise HostError(
                f"git cannot use the repository around {root}: {said.removeprefix('fatal: ')}",
                expected="expected one that it can read and write, or none",
                hint="git status says what to do",
            )
        top, prefix = os.fsdecode(done.stdout).split("\n")[:2]
        return cls(root=root, top=Path(top), prefix=prefix) if top else None

    def refuse_if_busy(self) -> None:
        """Refuse to mix with a merge or rebase that is not finished.

        Raises:
            UsageError: One is in progress.
        """
        for name, what in _BUSY.items():
            if self._paths[name].exists():
                raise UsageError(
                    f"{what} is in progress in {self.top}",
                    expected="expected none, since an update would become part of it",
                    hint=f"finish it or give it up first: git status; git {what.split()[-1]} --abort",
                )

    def refuse_if_locked(self) -> None:
        """Refuse to begin what could not be put into the index in the end.

        Raises:
            UsageError: Another command holds the index, or this user may not change it.
        """
        folder = self._paths["index"].parent
        if not os.access(folder, os.W_OK):
            raise UsageError(
                f"{folder} cannot be written",
                expected="expected an index of git that this user may change",
                hint="change its permissions or owner; nothing was written",
            )
        lock = folder / "index.lock"
        if lock.exists():
            raise UsageError(
                f"{lock} is there: another git command is at work, or was killed",
                expected="expected nobody else to change the index",
                hint="wait, or remove the file, then run the command again; nothing was written",
            )

    def refuse_if_unclean(self, paths: Iterable[PurePosixPath]) -> None:
        """Refuse to touch what is not committed; files that git is told to ignore are nobody's to commit.

        Raises:
            UsageError: One of the files is not as committed.
        """
        unclean = self._unclean([self.prefix + str(path) for path in paths])
        if unclean:
            more = f" and {len(unclean) - 3} more" if len(unclean) > 3 else ""
            raise UsageError(
                f"{', '.join(unclean[:3])}{more}: not as committed, and the update must change what is there",
                expected="expected the files that it touches to be committed; others may be as they are",
                hint="git add -A && git commit, or git stash, then run the command again",
            )

    def refuse_if_hidden(self, paths: Iterable[PurePosixPath]) -> None:
        """Refuse to take for removed what git knows and has not checked out.

        Raises:
            UsageError: One of the files is outside of a sparse checkout.
        """
        names = [self.prefix + str(path) for path in paths]
        if not names:
            return
        listed = git.run(self.top, "--literal-pathspecs", "ls-files", "-t", "-z", "--", *names).stdout
        hidden = [line[2:].removeprefix(self.prefix) for line in os.fsdecode(listed).split("\0") if line[:1] == "S"]
        if hidden:
            more = f" and {len(hidden) - 3} more" if len(hidden) > 3 else ""
            raise UsageError(
                f"{', '.join(hidden[:3])}{more}: not checked out, since this is a sparse checkout",
                expected="expected all files of an operator that is updated",
                hint="check them out: git sparse-checkout add, or git sparse-checkout disable",
            )

    def _unclean(self, paths: Sequence[str]) -> list[str]:
        if not paths:
            return []
        options = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
        done = git.run(self.top, "--literal-pathspecs", *options, "--", *paths)
        lines = os.fsdecode(done.stdout).split("\0")
        return [line[3:].removeprefix(self.prefix) for line in lines if line]

    def entries(self, paths: Iterable[PurePosixPath]) -> dict[str, list[str]]:
        """What the index has of each path: `mode blob stage`, without those it has nothing of."""
        names = [self.prefix + str(path) for path in paths]
        found: dict[str, list[str]] = {str(path).removeprefix(self.prefix): [] for path in names}
        if names:
            done = git.run(self.top, "--literal-pathspecs", "ls-files", "--stage", "-z", "--", *names)
            for line in os.fsdecode(done.stdout).split("\0"):
                if line:
                    about, path = line.split("\t", 1)
                    found[path.removeprefix(self.prefix)].append(about)
        return found

    def blob(self, content: bytes) -> str:
        """Put content into the store of objects; returns its name."""
        return git.run(self.top, "hash-object", "-w", "--stdin", given=content).stdout.decode().strip()

    def stage(self, paths: Iterable[PurePosixPath], entries: Mapping[str, Sequence[str]], scratch: Path) -> None:
        """Put files into the index as they are, and others with the given entries, all at once.

        A kill at any moment leaves the index as it was or as it will be, and at most a lock that the next call knows
        as its own: both are links to one file in `scratch`.

        Raises:
            UsageError: Another command holds the index.
        """
        names = [self.prefix + str(path) for path in paths]
        index, copy = self._paths["index"], scratch / "index"
        lock = index.with_name("index.lock")
        for _ in range(_ATTEMPTS):
            self._break_own_lock(lock, copy)
            before = _identity(index)
            (scratch / "index.lock").unlink(missing_ok=True)
            copy.unlink(missing_ok=True)
            if before:
                shutil.copy2(index, copy)
            environment = {"GIT_INDEX_FILE": str(copy.absolute())}
            self._write(names, entries, environment)
            try:
                os.link(copy, lock)
            except FileExistsError as error:
                raise UsageError(
                    f"{lock} is there: another git command is at work, or was killed",
                    expected="expected nobody else to change the index",
                    hint=f"wait, or remove the file, then: tilewright update --continue (in {self.root})",
                ) from error
            if _identity(index) == before:
                os.replace(lock, index)
                copy.unlink(missing_ok=True)
                return
            lock.unlink()
        raise UsageError(
            f"{index} changes all the time",
            expected="expected nobody else to change it",
            hint="wait for the other command, then: tilewright update --continue",
        )

    def _write(
        self, names: Sequence[str], entries: Mapping[str, Sequence[str]], environment: Mapping[str, str]
    ) -> None:
        kept = [name for name in names if self._is_kept(name)]
        if kept:
            given = b"".join(os.fsencode(name) + b"\0" for name in kept)
            git.run(
                self.top, "update-index", "--add", "--remove", "-z", "--stdin", given=given, environment=environment
            )
        lines = []
        for path, abouts in entries.items():
            lines.append(f"0 {self._no_blob}\t{self.prefix}{path}\0")
            lines += [f"{about}\t{self.prefix}{path}\0" for about in abouts]
        if lines:
            given = os.fsencode("".join(lines))
            git.run(self.top, "update-index", "-z", "--index-info", given=given, environment=environment)

    def _is_kept(self, name: str) -> bool:
        """Whether git keeps the file, or would if it were added."""
        return name in self._tracked or name not in self._ignored

    @cached_property
    def _tracked(self) -> set[str]:
        listed = git.run(self.top, "ls-files", "-z", "--", self.prefix or ".").stdout
        return set(os.fsdecode(listed).split("\0"))

    @cached_property
    def _ignored(self) -> set[str]:
        options = ("ls-files", "--others", "--ignored", "--exclude-standard", "-z")
        return set(os.fsdecode(git.run(self.top, *options, "--", self.prefix or ".").stdout).split("\0"))

    @cached_property
    def _no_blob(self) -> str:
        """The name that stands for nothing; its length is that of the repository's names."""
        known = git.run(self.top, "rev-parse", "--show-object-format").stdout.strip()
        return "0" * (64 if known == b"sha256" else 40)

    @cached_property
    def _paths(self) -> dict[str, Path]:
        """Where git keeps what, which differs for work trees and submodules."""
        names = ("index", *_BUSY)
        asked = [word for name in names for word in ("--git-path", name)]
        found = os.fsdecode(git.run(self.top, "rev-parse", *asked).stdout).splitlines()
        return {name: self.top / path for name, path in zip(names, found, strict=True)}

    @staticmethod
    def _break_own_lock(lock: Path, copy: Path) -> None:
        with suppress(FileNotFoundError):
            if lock.samefile(copy):
                lock.unlink()


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
