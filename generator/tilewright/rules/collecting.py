"""Which files are meant: Python source below the folders that are named, and what else their packages hold."""

import os
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path

from tilewright.errors import UsageError
from tilewright.rules.settings import Settings

_NO_SOURCE = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist", "venv"})


def collect(paths: Iterable[Path], settings: Settings) -> list[Path]:
    """Absolute paths of the files named, and of the `.py` files below the folders named, less what settings exclude.

    Links to folders are not followed, so that a loop of links ends. Raises UsageError for a path that does not exist.
    """
    found: list[Path] = []
    for path in map(Path, map(os.path.abspath, paths)):
        try:
            exists = path.exists()
        except OSError:  # a loop of links
            exists = False
        if not exists:
            raise UsageError(f"{path} does not exist", expected="expected files and folders to check")
        files = _below(path) if path.is_dir() else [path]
        found += [file for file in files if not settings.excludes(file)]
    return list(dict.fromkeys(found))


def surroundings(paths: Iterable[Path]) -> list[Path]:
    """All `.py` files of the packages that the given files belong to."""
    tops = {top for path in paths if (top := _top(path.parent)) is not None}
    return [file for top in sorted(tops) for file in _below(top)]


def _top(folder: Path) -> Path | None:
    """The outermost package around a folder, which may be the folder itself."""
    top = None
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        top, folder = folder, folder.parent
    return top


def _below(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NO_SOURCE and not name.startswith("."))
        yield from (Path(where, name) for name in sorted(files) if name.endswith(".py"))
