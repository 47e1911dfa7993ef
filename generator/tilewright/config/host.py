"""Find the repository around a folder: by its profile, or by what only TileGym has."""

import re
from pathlib import Path
from typing import Any
from typing import get_args

from tilewright.errors import HostError
from tilewright.model.host import Host
from tilewright.model.host import Layout

PROFILE = Path(".tilewright", "host.yml")
TILEGYM_STUBS = Path("src", "tilegym", "ops", "ops.py")


def find_host(start: Path) -> Host | None:
    """The host that `start` lies in: the nearest folder upwards that is one, or None."""
    start = start.resolve()
    for root in (start, *start.parents):
        if (root / PROFILE).is_file():
            return _read(root)
        if (root / TILEGYM_STUBS).is_file():
            return Host(root=root, layout="tilegym", package="src/tilegym")
        if (root / ".git").exists():  # what is above belongs to another repository
            return None
    return None


def _read(root: Path) -> Host:
    import yaml

    path = root / PROFILE
    try:
        profile = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _bad(path, "is not YAML") from error
    if not isinstance(profile, dict):
        raise _bad(path, "is not a mapping")
    layout: Any = profile.get("layout")
    if layout not in get_args(Layout):
        raise _bad(path, f"has the layout {layout!r}")
    package = profile.get("package")
    if not isinstance(package, str) or not re.fullmatch(r"(src/)?[A-Za-z_]\w*", package):
        raise _bad(path, f"has the package {package!r}")
    return Host(root=root, layout=layout, package=package)


def _bad(path: Path, what: str) -> HostError:
    return HostError(
        f"{path} {what}",
        expected="expected two lines such as `layout: standalone` (or tilegym) and `package: my_ops`",
        hint="mend the file, or remove it to have the next `tilewright new` write it again",
    )
