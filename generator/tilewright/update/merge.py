"""Merge any number of files in one three-way merge of git's, in a repository of its own."""

import os
import re
import tempfile
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from pathlib import Path
from pathlib import PurePosixPath

from tilewright.errors import MissingError
from tilewright.update import git
from tilewright.update.hunks import Hunk
from tilewright.update.hunks import Text
from tilewright.update.hunks import parse
from tilewright.update.sides import Sides

_APART = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


@dataclass(frozen=True, kw_only=True)
class Merged:
    """What became of one file: stretches of text and, where both sides changed the same lines, hunks of both."""

    path: PurePosixPath
    parts: tuple[Text | Hunk, ...] | None  # None: the file goes
    sides: Sides  # what was merged, under the name that the file has now

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        """Where both sides changed the same."""
        return tuple(part for part in self.parts or () if isinstance(part, Hunk))


@dataclass
class _Tree:
    """What git's merge left: the content of each file, and the blobs of each unmerged one by their stage."""

    contents: dict[PurePosixPath, bytes] = field(default_factory=dict)
    unmerged: dict[PurePosixPath, dict[int, bytes]] = field(default_factory=dict)


def merge(files: Sequence[Sides]) -> list[Merged]:
    """Every file merged; what only one side changed is settled without git.

    A file that the template renamed is merged under its new name. The owner's version of one that the template no
    longer has is a hunk beside nothing.

    Raises:
        MissingError: Both sides changed a file and there is no git.
    """
    open_ = [sides for sides in files if not sides.is_settled]
    taken = _with_candidates_of_renames(files, open_)
    merged = [_settled(sides) for sides in files if sides.path not in taken]
    return sorted([*merged, *_merged(taken)], key=lambda each: each.path) if taken else merged


def _settled(sides: Sides) -> Merged:
    content = sides.settled
    return Merged(path=sides.path, parts=None if content is None else (Text(content),), sides=sides)


def _with_candidates_of_renames(files: Sequence[Sides], open_: Sequence[Sides]) -> dict[PurePosixPath, Sides]:
    """What git must see; where an edited file is gone from the template, also what is new in it."""
    taken = {sides.path: sides for sides in open_}
    if any(sides.template is None for sides in open_):
        taken |= {sides.path: sides for sides in files if sides.base is None and sides.owner is None}
    return taken


def _merged(files: Mapping[PurePosixPath, Sides]) -> Iterator[Merged]:
    if not git.is_installed():
        names = ", ".join(map(str, list(files)[:3]))
        raise MissingError(
            f"{names}: edited by you and changed by the template, and there is no git to merge the two",
            expected="expected git 2.38 or newer on the PATH",
            hint="install git and run the command again; nothing was changed",
        )
    alike = {path: sides.with_line_ends_of_template() for path, sides in files.items()}
    size = _marker_size(alike.values())
    tree = _three_way(alike, size)
    for path in sorted({*alike, *tree.contents}):
        sides = alike.get(path) or Sides(path=path, base=None, owner=None, template=None)
        unmerged = tree.unmerged.get(path)
        if unmerged is not None:  # after a rename the blobs are those of two names
            sides = Sides(path=path, base=unmerged.get(1), owner=unmerged.get(2), template=unmerged.get(3))
        parts = _parts(tree.contents.get(path), sides, size, is_unmerged=unmerged is not None)
        original = files.get(path, sides)
        if original.is_crlf and parts is not None:
            parts = tuple(part.with_crlf() for part in parts)
        yield Merged(path=path, parts=parts, sides=original if unmerged is None else sides)


def _parts(content: bytes | None, sides: Sides, size: int, *, is_unmerged: bool) -> tuple[Text | Hunk, ...] | None:
    if content is None:
        return None
    if not is_unmerged:
        return (Text(content),)
    if sides.owner is None or sides.template is None:
        return (Hunk(owner=sides.owner or b"", template=sides.template, line=1),)
    parts = parse(content, size)
    if not any(isinstance(part, Hunk) for part in parts):  # git cannot merge it line by line
        return (Hunk(owner=sides.owner, template=sides.template, line=1),)
    *others, last = parts
    if isinstance(last, Hunk):  # where a last line has no end, git gives it one
        last = replace(last, owner=_as_in(sides.owner, last.owner), template=_as_in(sides.template, last.template))
    return (*others, last)


def _as_in(file: bytes, end: bytes | None) -> bytes:
    end = end or b""
    return end if file.endswith(end) else end.removesuffix(b"\n")


def _marker_size(files: Iterable[Sides]) -> int:
    """So many characters that no line of any file looks like a marker of a conflict."""
    longest = 0
    for sides in files:
        for content in (sides.base, sides.owner, sides.template):
            runs = re.findall(rb"(?m)^(?:<+|=+|>+)", content or b"")
            longest = max([longest, *map(len, runs)])
    return max(20, longest + 1)


def _three_way(files: Mapping[PurePosixPath, Sides], size: int) -> _Tree:
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        folder = Path(name)
        git.run(folder, "init", "-q", "--bare", "--template=", ".", environment=_APART)
        (folder / "info").mkdir(exist_ok=True)
        (folder / "info" / "attributes").write_text(f"* conflict-marker-size={size}\n")
        git.run(folder, "fast-import", "--quiet", given=b"".join(_commits(files)), environment=_APART)
        arguments = ("merge-tree", "--write-tree", "-z", "--no-messages", "owner", "template")
        done = git.run(folder, *arguments, environment=_APART, check=False)
        if done.returncode > 1:
            said = " ".join(done.stderr.decode(errors="replace").split())
            raise MissingError(
                f"git cannot merge: {said[:200]}", expected="expected git 2.38 or newer", hint="update git"
            )
        tree, *unmerged = done.stdout.decode().rstrip("\0").split("\0")
        return _read(folder, tree, unmerged)


def _read(folder: Path, tree: str, unmerged: Sequence[str]) -> _Tree:
    listed = git.run(folder, "ls-tree", "-r", "-z", tree, environment=_APART).stdout.decode()
    entries = [line.split("\t") for line in listed.rstrip("\0").split("\0") if line]
    stages = [line.split("\t") for line in unmerged if line]
    blobs = [about.split()[2] for about, _ in entries] + [about.split()[1] for about, _ in stages]
    contents = list(_blobs(folder, blobs))
    read = _Tree(contents={PurePosixPath(path): content for (_, path), content in zip(entries, contents, strict=False)})
    for (about, path), content in zip(stages, contents[len(entries) :], strict=True):
        read.unmerged.setdefault(PurePosixPath(path), {})[int(about.split()[2])] = content
    return read


def _blobs(folder: Path, names: Sequence[str]) -> Iterator[bytes]:
    given = "".join(f"{name}\n" for name in names).encode()
    out = git.run(folder, "cat-file", "--batch", given=given, environment=_APART).stdout
    position = 0
    for _ in names:
        end = out.index(b"\n", position)
        size = int(out[position:end].split()[2])
        yield out[end + 1 : end + 1 + size]
        position = end + size + 2


def _commits(files: Mapping[PurePosixPath, Sides]) -> Iterator[bytes]:
    """A stream for `git fast-import`: the base, and the two sides on top of it."""
    for branch in ("base", "owner", "template"):
        yield f"commit refs/heads/{branch}\ncommitter tilewright <> 0 +0000\ndata 0\n".encode()
        if branch != "base":
            yield b"from refs/heads/base\ndeleteall\n"
        for path, sides in files.items():
            content: bytes | None = getattr(sides, branch)
            if content is not None:
                yield f"M 100644 inline {path}\ndata {len(content)}\n".encode() + content + b"\n"
        yield b"\n"
