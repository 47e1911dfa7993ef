"""Time `tilewright check`: its start, a file of an operator, and all kernels of the installed TileGym.

Wall and CPU seconds, each the best of several runs; the two differ on a machine that does other work.
"""

import importlib.util
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from collections.abc import Sequence
from pathlib import Path

from tilewright.rules.collecting import surroundings
from tilewright.rules.engine import check_files
from tilewright.rules.reading import readable

ROOT = Path(__file__).resolve().parents[1]
REPETITIONS = 5


def main() -> None:
    """Print one line for each figure, with what it should stay below."""
    operators = sorted((ROOT / "reference_ops").rglob("*.py"))
    _report("start-up", _best(_start), 1, "s", 0.4)
    _report(f"a file of {len(operators)}", _best(lambda: _check(operators)), 1000 / len(operators), "ms", 30)
    tilegym = importlib.util.find_spec("tilegym")
    if tilegym and tilegym.submodule_search_locations:
        kernels = sorted((Path(tilegym.submodule_search_locations[0]) / "ops/cutile").rglob("*.py"))
        _report(f"ops/cutile of TileGym, {len(kernels)} files", _best(lambda: _check(kernels), 2), 1, "s", 10)


def _start() -> None:
    """A process that checks one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.py")
        path.write_text("x = 1\n")
        subprocess.run([sys.executable, "-m", "tilewright", "check", path], check=True, capture_output=True)


def _check(files: Sequence[Path]) -> None:
    check_files(files, context=readable(surroundings(files)))


def _best(work: Callable[[], None], repetitions: int = REPETITIONS) -> tuple[float, float]:
    """Least wall seconds and least CPU seconds, those of child processes included."""
    walls, processors = [], []
    for _ in range(repetitions):
        wall, processor = time.perf_counter(), _processor_seconds()
        work()
        walls.append(time.perf_counter() - wall)
        processors.append(_processor_seconds() - processor)
    return min(walls), min(processors)


def _processor_seconds() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _report(what: str, seconds: tuple[float, float], scale: float, unit: str, limit: float) -> None:
    wall, processor = (value * scale for value in seconds)
    print(f"{what:<40} {wall:8.2f} {unit} wall {processor:8.2f} {unit} CPU   below {limit} {unit}")


if __name__ == "__main__":
    main()
