"""Which names an operator can have, in general and in one host."""

import keyword
import re
from pathlib import Path

from tilewright.catalogue.data_file import read_data
from tilewright.errors import OperatorExistsError
from tilewright.errors import UsageError
from tilewright.model.host import Host

LONGEST = 60
KEYWORDS = {*keyword.kwlist, *keyword.softkwlist, "type"}  # a soft keyword since Python 3.12
TEST = re.compile("^(?:(?:test|pytest)_)+")  # what pytest takes for its own
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in range(10))}


def check_operator_name(name: str, partials: Path, *, single_file: bool = False) -> None:
    """Refuse a name that the generated code, pytest or a file system could not bear; `partials` has the list."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or len(name) > LONGEST:
        raise UsageError(
            f"{name!r} is not an operator name",
            expected=f"expected snake_case ASCII of at most {LONGEST} characters, for example rms_norm",
            hint=f"for example: tilewright new {_similar(name, partials)}",
        )
    if taken := _taken(name, partials, single_file=single_file):
        raise UsageError(
            f"{name} is {taken}",
            expected="expected a name of its own",
            hint=f"for example: tilewright new {_free(name)}",
        )


def _taken(name: str, partials: Path, *, single_file: bool = False) -> str:
    """What the name is already, or nothing."""
    known = read_data(partials / "names.yml")
    if name in KEYWORDS:
        return "a Python keyword"
    if name in DEVICES:
        return "a device name on Windows"
    if name in known["taken"].split():
        return "a module or name that the generated code uses itself"
    if TEST.match(name):
        return "a test or a hook to pytest"
    if single_file and name in known["modules"].split():
        return "a module that the file would hide from PyTorch"
    return ""


def check_operator_is_free(name: str, host: Host) -> None:
    """Refuse a name that an operator or module of the host already has."""
    if (host.root / ".tilewright" / "ops" / f"{name}.yml").exists():
        raise OperatorExistsError(
            f"operator {name} already exists in {host.root}",
            expected="expected a name that is free",
            hint=f"to see it: tilewright status; to start over: tilewright remove {name}",
        )
    package = host.root / host.package
    if host.layout == "standalone" and name == package.name:
        raise UsageError(
            f"{name} is the package itself", expected="expected a name that is free", hint=f"use {name}_op"
        )
    for path in _modules(name, package, host):
        if _is_module(path):
            raise OperatorExistsError(
                f"{path.relative_to(host.root)} already exists and was not written by tilewright",
                expected="expected a name that no operator or module here has",
                hint=f"use another name, or move {path.relative_to(host.root)} away",
            )


def _modules(name: str, package: Path, host: Host) -> list[Path]:
    folders = [package]
    if host.layout == "tilegym":
        ops = package / "ops"
        folders = [ops, ops / "cutile", ops / "cutile" / "experimental"]
    return [path for folder in folders for path in (folder / name, folder / f"{name}.py")]


def _is_module(path: Path) -> bool:
    """A folder that only Python's cache is left in was a module once."""
    return path.is_file() or (path.is_dir() and any(child.name != "__pycache__" for child in path.iterdir()))


def _similar(name: str, partials: Path) -> str:
    """A name that would do, as near as possible to the refused one."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name.encode("ascii", "ignore").decode())
    similar = "_".join(words).lower().lstrip("0123456789_")[:LONGEST].rstrip("_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", similar):
        return "my_op"
    return _free(similar) if _taken(similar, partials) else similar


def _free(name: str) -> str:
    return f"{TEST.sub('', name)[: LONGEST - 3].rstrip('_')}_op"
