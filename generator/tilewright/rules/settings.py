"""Read `[tool.tilewright]` of the nearest pyproject.toml."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from pathlib import PurePath
from typing import Any

from tilewright.catalogue.nearest import unknown_name
from tilewright.errors import UsageError

_KEYS = ("select", "ignore", "exclude")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a project says about its checks."""

    path: Path | None = None  # of the file; None: there is none
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()  # patterns of paths, relative to the folder of the file

    def excludes(self, path: Path) -> bool:
        """Whether a pattern matches a file or a folder around it."""
        if self.path is None or not self.exclude:
            return False
        try:
            relative = path.absolute().relative_to(self.path.parent)
        except ValueError:
            return False
        around = [relative, *relative.parents][:-1]
        return any(_matches(each, pattern) for each in around for pattern in self.exclude)


def read_settings(start: Path) -> Settings:
    """The settings of the nearest pyproject.toml at or above `start`; a file without the table counts as nearest.

    Raises UsageError where the file is no TOML, or the table has a key or value that is not known.
    """
    for folder in (start.absolute(), *start.absolute().parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            return _read(path)
    return Settings()


def _read(path: Path) -> Settings:
    try:
        document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}", hint="correct the file") from error
    tools = document.get("tool", {})
    table = tools.get("tilewright", {}) if isinstance(tools, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(
            f"{path}: tool.tilewright is {table!r}",
            expected="expected a table: [tool.tilewright]",
            hint="correct the file",
        )
    for key, value in table.items():
        if key not in _KEYS:
            raise unknown_name(f"{path}: [tool.tilewright] has no key {key}", key, _KEYS)
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            raise UsageError(
                f"{path}: {key} in [tool.tilewright] is {value!r}",
                expected=f'expected a list of strings, as in {key} = ["{"tests/**" if key == "exclude" else "TW2"}"]',
            )
    return Settings(path=path, **{key: tuple(value) for key, value in table.items()})


def _matches(path: Path, pattern: str) -> bool:
    forms = pattern.rstrip("/"), pattern.removesuffix("/**")
    return any(path.match(form) for form in forms if PurePath(form).parts)
