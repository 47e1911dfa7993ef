"""Faults put into rendered operators, one at a time: most are found from the source, others by verifying.

The faults are the tables in `faults`; its README says how they were chosen, and what a run found.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.tilegym_checkout import pristine_tilegym_checkout
from tilewright.rules.engine import check_sources
from tilewright.rules.finding import Severity

__all__ = ["pristine_tilegym_checkout"]

ROOT = Path(__file__).parents[2]
TABLES = sorted(Path(__file__).with_name("faults").glob("*.toml"))
LEAST = 0.90  # of all faults
LEAST_VERIFIED = 1.00  # by both
LEAST_FAULTS = 60


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A text of one file that is replaced by another; `host` is where the file is, this repository if empty."""

    kind: str
    file: str
    old: str
    new: str
    host: str = ""

    @property
    def operator(self) -> str:
        """Name of the operator whose file it is."""
        if self.host:
            return hosts()[self.host]["new"][0]
        path = Path(self.file)
        return path.parent.name if path.is_relative_to("reference_ops") else path.stem.partition("_")[2]

    def __str__(self) -> str:
        changed = next(
            (new or old for old, new in zip(self.old.splitlines(), self.new.splitlines(), strict=False) if old != new),
            self.new or self.old,
        )
        return f"{self.kind}: {self.host}{':' if self.host else ''}{self.file}: {changed.strip()[:80]}"

    def applied(self, text: str) -> str:
        """The text with the fault; raises ValueError where the text is not there any more."""
        if self.old not in text:
            raise ValueError(f"{self.file} has no {self.old!r} any more: choose another fault")
        return text.replace(self.old, self.new, 1)


def hosts() -> dict[str, dict]:
    return {name: host for path in TABLES for name, host in tomllib.loads(path.read_text()).get("host", {}).items()}


def faults() -> Iterator[Fault]:
    for path in TABLES:
        for each in tomllib.loads(path.read_text())["fault"]:
            yield Fault(**each)


FAULTS = list(faults())


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """The folder of a host by its name, made when it is first asked for."""
    made = {"": ROOT}

    def make(name: str) -> Path:
        if name not in made:
            folder = tmp_path_factory.mktemp(name) / "host"
            if hosts()[name].get("into") == "tilegym":
                shutil.copytree(request.getfixturevalue("pristine_tilegym_checkout"), folder, symlinks=True)
            else:
                folder.mkdir()
            command = [sys.executable, "-m", "tilewright", "new", *hosts()[name]["new"]]
            subprocess.run(command, cwd=folder, check=True, capture_output=True, stdin=subprocess.DEVNULL)
            made[name] = folder
        return made[name]

    return make


def is_found(fault: Fault, root: Path) -> bool:
    """Whether checking the operator's files finds an error or a warning more than without the fault."""
    path, operator = root / fault.file, fault.operator
    patterns = (f"*/{operator}/*.py", f"src/tilegym/ops/cutile/{operator}.py", f"tests/*/*_{operator}.py")
    files = sorted({path, *(file for pattern in patterns for file in root.glob(pattern))})
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    package = root / Path(fault.file).parts[0]
    around = {file: file.read_text(encoding="utf-8") for file in package.rglob("*.py") if file not in texts}
    found = _findings({**texts, path: fault.applied(texts[path])}, around)
    return bool(found - _findings(texts, around) if fault.host == "tilegym" else found)


def _findings(texts: dict[Path, str], around: dict[Path, str]) -> set[tuple[Path, str, str]]:
    return {
        (each.path, each.code, each.message)
        for each in check_sources(texts, context=around).findings
        if each.severity is not Severity.INFO
    }


@pytest.fixture(scope="session")
def missed(host: Callable[[str], Path]) -> list[Fault]:
    """Faults of which the source says nothing."""
    return [fault for fault in FAULTS if not is_found(fault, host(fault.host))]


def test_there_are_many_faults() -> None:
    assert len(FAULTS) >= LEAST_FAULTS
    assert len(set(FAULTS)) == len(FAULTS)


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if not fault.host], ids=str)
def test_a_fault_can_be_put_in(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert fault.applied(text) != text


@pytest.mark.slow
def test_most_faults_are_found_from_the_source(missed: list[Fault]) -> None:
    assert 1 - len(missed) / len(FAULTS) >= LEAST, "\n".join(map(str, missed))


def failed_steps(fault: Fault, root: Path, copy: Path) -> list[str]:
    """Steps of `tilewright verify` that fail, without a GPU, for a copy of the host with the fault."""
    ignored = shutil.ignore_patterns("__pycache__", ".git", ".venv")
    if fault.host:
        shutil.copytree(root, copy, symlinks=True, ignore=ignored)
    else:
        for folder in ("reference_ops", "tests/ops", "tests/benchmark", ".tilewright"):
            shutil.copytree(root / folder, copy / folder, ignore=ignored)
        for file in ("pyproject.toml", "conftest.py", "tests/__init__.py", "tests/conftest.py", "tests/common.py"):
            shutil.copy(root / file, copy / file)
    path = copy / fault.file
    path.write_text(fault.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
    command = [sys.executable, "-m", "tilewright", "verify", fault.operator, "--arch", "sm_90", "--json"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTEST_ADDOPTS": "-x"}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    (operator,) = json.loads(done.stdout)["operators"]
    return [each["step"] for each in operator["steps"] if each["verdict"] == "failed"]


@pytest.mark.slow
def test_verifying_finds_what_the_source_does_not_show(
    missed: list[Fault], host: Callable[[str], Path], tmp_path: Path
) -> None:
    unseen = [
        fault
        for number, fault in enumerate(missed)
        if not failed_steps(fault, host(fault.host), tmp_path / str(number))
    ]
    assert 1 - len(unseen) / len(FAULTS) >= LEAST_VERIFIED, "\n".join(map(str, unseen))
