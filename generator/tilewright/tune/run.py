"""Tune an operator: on the GPU that is here, and for other architectures by what the compiler reports."""

import datetime
import subprocess
import sys
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pathlib import PurePosixPath

from tilewright.aot.compile import Progress
from tilewright.bench.surroundings import versions
from tilewright.codemod.table import Place
from tilewright.codemod.table import Table
from tilewright.config import read_answers
from tilewright.cutile.targets import Target
from tilewright.cutile.toolchain import is_installed
from tilewright.errors import NothingRanError
from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange
from tilewright.model.operator import Operator
from tilewright.model.tuning import TunedEntry
from tilewright.tune.laboratory import Laboratory
from tilewright.tune.laboratory import Size
from tilewright.tune.notebook import Notebook
from tilewright.tune.notebook import digest
from tilewright.tune.notebook import folder
from tilewright.tune.space import Choices
from tilewright.tune.tuner import Tuner


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What was found for one operator, and the kernel file that says so."""

    entries: tuple[TunedEntry, ...]
    gpu: dict[str, str]  # name, architecture and driver; empty where nothing was measured
    date: str
    before: bytes
    after: bytes

    def changes(self, operator: Operator) -> ChangeSet:
        """The change of the kernel file.

        Raises:
            UsageError: It was edited in the meantime.
        """
        root, path = operator.host.root, operator.kernel
        if (root / path).read_bytes() != self.before:
            raise UsageError(
                f"{path} was edited while it was tuned",
                expected="expected it as it was when the search began",
                hint="run the command again: what was measured is kept",
            )
        changed = () if self.after == self.before else (FileChange(path=path, before=self.before, after=self.after),)
        return ChangeSet(root=root, changes=changed)


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to tune, and how."""

    operator: Operator
    partials: Path  # of the template, where the families say what there is to tune
    targets: Sequence[Target] = ()  # by the compiler's report; empty: the GPU that is here, by measuring
    sizes: Sequence[Size] = ()  # empty: those of the benchmark
    dtypes: Sequence[str] = ()  # empty: the first of the benchmark for each size of an element
    jobs: int | None = None
    exhaustive: bool = False


def tune(
    task: Task,
    laboratory: type[Laboratory] = Laboratory,
    progress: Progress | None = None,
    require: Callable[[], object] = lambda: None,
) -> Tuning:
    """Search the table of the operator for each architecture.

    Args:
        task: What to tune.
        laboratory: What compiles and measures.
        progress: Told how many candidates were tried.
        require: Raises where there is nothing to tune on; called while the processes of the laboratory begin.

    Raises:
        UsageError: The operator has no table or benchmark, cannot be imported, or lacks what was asked for.
    """
    operator = task.operator
    path = operator.path(operator.kernel)
    answers = read_answers(operator.name, operator.host.root)
    choices = Choices.read(task.partials, str(answers["family"]), str(answers.get("variant", "")))
    if not operator.path(operator.benchmark).is_file():
        raise UsageError(
            f"{operator.name} has no benchmark, which says on what to tune it",
            expected=f"expected a file {operator.benchmark}",
            hint=f"have it written again: tilewright update {operator.name}",
        )
    before = path.read_bytes()
    search = _Search(task, choices, progress, before.decode())
    for arch in [target.name for target in task.targets] or [""]:
        with laboratory(operator, arch, jobs=task.jobs) as lab:
            require()
            search.on(lab, arch)
    changed = search.text != before.decode()
    after = _formatted(search.text, operator.kernel, operator.host.root).encode() if changed else before
    return Tuning(entries=tuple(search.entries), gpu=search.gpu, date=search.date, before=before, after=after)


class _Search:
    """The kernel file on its way from one architecture to the next."""

    def __init__(self, task: Task, choices: Choices, progress: Progress | None, text: str) -> None:
        self._task = task
        self._choices = choices
        self._progress = progress
        self.text = text
        self.entries: list[TunedEntry] = []
        self.gpu: dict[str, str] = {}
        self.date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

    def on(self, lab: Laboratory, arch: str) -> None:
        """Tune for an architecture by what the compiler reports; without one, for the GPU that is here."""
        if not arch:
            self.gpu = {name: str(lab.gpu()[name]) for name in ("gpu", "arch", "driver")}
            arch = self.gpu["arch"]
        task, path, begun = self._task, self._task.operator.kernel, self.text
        benchmark = lab.benchmark()
        sizes = _checked(task.sizes, benchmark["names"]) or benchmark["sizes"]
        for dtype, itemsize in _chosen(task.dtypes, benchmark["dtypes"], self._choices).items():
            place = Place(name=self._choices.table, arch=arch, itemsize=itemsize if self._choices.by_itemsize else None)
            lab.notebook = self._notebook(place)
            tuner = Tuner(
                lab,
                self._choices,
                place,
                path=path,
                dtype=dtype,
                sizes=sizes,
                exhaustive=task.exhaustive,
                progress=self._progress,
            )
            self.text, tuned = tuner.measured(self.text) if self.gpu else tuner.compiled(self.text)
            self.entries += tuned
        if self.text != begun:
            self.text = Table(self.text, place, path=path).signed(self._signature())

    def _notebook(self, place: Place) -> Notebook:
        operator = self._task.operator
        about = {
            "operator": operator.name,
            "kernel": digest(Table(self.text, place, path=operator.kernel).without().encode()),
            "benchmark": digest(operator.path(operator.benchmark).read_bytes()),
            "arch": place.arch,
            "gpu": self.gpu,
            "versions": versions(),
        }
        return Notebook(folder(), operator.name, about, self.date)

    def _signature(self) -> str:
        compiler = f"cuda-tile {versions()['cuda-tile']}"
        how = f"tuned on {self.gpu['gpu']}, {compiler}" if self.gpu else f"by what {compiler} reports, not measured"
        return f"{how}, {self.date[:10]}"


def _chosen(wanted: Sequence[str], known: dict[str, int], choices: Choices) -> dict[str, int]:
    """Dtypes to tune with: one for each part of the table, unless others were asked for."""
    unknown = [dtype for dtype in wanted if dtype not in known]
    if unknown:
        raise UsageError(
            f"the benchmark has no {', '.join(unknown)}", expected=f"expected one or more of {', '.join(known)}"
        )
    if wanted:
        return {dtype: known[dtype] for dtype in wanted}
    if not known:
        raise NothingRanError("the benchmark has no dtypes", hint="add one to its DTYPES")
    first: dict[int, str] = {}
    for dtype, itemsize in known.items():
        first.setdefault(itemsize, dtype)
    found = {dtype: itemsize for itemsize, dtype in first.items()}
    return found if choices.by_itemsize else dict([next(iter(found.items()))])


def _checked(sizes: Sequence[Size], names: Sequence[str]) -> Sequence[Size]:
    for size in sizes:
        if len(size) != len(names):
            raise UsageError(
                f"the size {'x'.join(map(str, size))} has {len(size)} numbers",
                expected=f"expected {len(names)}: {'x'.join(names)}",
            )
    return sizes


def _formatted(text: str, path: PurePosixPath, root: Path) -> str:
    """The text as ruff formats it with the settings of the host, where ruff is installed."""
    if not is_installed("ruff"):
        return text
    command = [sys.executable, "-m", "ruff", "format", "--no-cache", "--stdin-filename", str(path), "-"]
    done = subprocess.run(command, cwd=root, input=text, capture_output=True, text=True, check=False)
    return text if done.returncode else done.stdout
