"""Which names an operator can have, in general and in one host."""

import keyword
import re
from pathlib import Path

from tilewright.errors import OperatorExistsError
from tilewright.errors import UsageError
from tilewright.model.host import Host

LONGEST = 60
KEYWORDS = {*keyword.kwlist, *keyword.softkwlist, "type"}  # a soft keyword since Python 3.12
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in range(10))}
# Names that the rendered package, its tests or their imports use themselves.
TAKEN = {
    *("backend", "ops", "common", "conftest", "test", "tests", "torch", "cuda", "ct", "pytest", "triton", "tilegym"),
    *("tilewright", "math", "functools", "reference", "inputs", "out", "kwargs", "dispatch", "register_impl"),
}


def check_operator_name(name: str) -> None:
    """Refuse a name that the generated code or a file system could not bear."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or len(name) > LONGEST:
        raise UsageError(
            f"{name!r} is not an operator name",
            expected=f"expected snake_case ASCII of at most {LONGEST} characters, for example rms_norm",
            hint=f"for example: tilewright new {_similar(name)}",
        )
    for names, what in (
        (KEYWORDS, "a Python keyword"),
        (DEVICES, "a device name on Windows"),
        (TAKEN, "a module or name that the generated code uses itself"),
    ):
        if name in names:
            raise UsageError(
                f"{name} is {what}",
                expected="expected a name of its own",
                hint=f"for example: tilewright new {name}_op",
            )


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


def _similar(name: str) -> str:
    """A name that would do, as near as possible to the refused one."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name.encode("ascii", "ignore").decode())
    similar = "_".join(words).lower().lstrip("0123456789_")[:LONGEST].rstrip("_")
    return similar if re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", similar) else "my_op"
