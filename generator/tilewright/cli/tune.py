"""`tilewright tune`: find the tiles and compiler hints of an operator's table."""

from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from tilewright.cli.changes import Diff
from tilewright.cli.changes import DryRun
from tilewright.cli.compile import Jobs
from tilewright.cli.console import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewright.tune.laboratory import Size


def tune(
    op: Annotated[str, typer.Argument(help="Name of the operator.")],
    shapes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Sizes to tune for, such as 4096x4096x64; default: those of the benchmark."),
    ] = None,
    dtypes: Annotated[
        str, typer.Option(help="Of those in the benchmark; default: one for each part of the table.")
    ] = "",
    arch: Annotated[
        str,
        typer.Option(
            metavar="SM_XX,...", help="Do not measure: take for these what the compiler reports to fit; needs no GPU."
        ),
    ] = "",
    exhaustive: Annotated[bool, typer.Option("--exhaustive", help="Measure every candidate, for comparison.")] = False,
    jobs: Jobs = None,
    dry_run: DryRun = False,
    diff: Diff = False,
    json: Json = False,
) -> None:
    """Search tiles and compiler hints for the GPU that is here, and write what is fastest into the operator's table."""
    from tilewright.cli import console
    from tilewright.cli.changes import Mode
    from tilewright.cli.changes import described
    from tilewright.cli.progress import progress_bar
    from tilewright.cli.target import require_host
    from tilewright.cutile.targets import select
    from tilewright.render import locate
    from tilewright.render.answers import parse_dtypes
    from tilewright.report import json as documents
    from tilewright.report.text import TextReport
    from tilewright.tune.run import Task
    from tilewright.tune.run import tune
    from tilewright.verify.device import driver_version
    from tilewright.verify.device import require_gpu
    from tilewright.verify.operators import choose
    from tilewright.verify.operators import find_operators

    def require() -> None:
        if not arch:
            by_report = f"tilewright tune {op} --arch SM_XX"
            require_gpu("tune on", otherwise=f"without one, by what the compiler reports: {by_report}")

    host, source = require_host(), locate()
    (operator,) = choose(find_operators(host), [op], host)
    if driver_version() is None:
        require()  # at once; where there is a driver, PyTorch is asked, which takes seconds, while others begin
    sizes = _read_sizes(shapes) if shapes else ()
    task = Task(
        operator=operator,
        partials=source.partials,
        targets=select(arch) if arch else (),
        sizes=sizes,
        dtypes=parse_dtypes(dtypes),
        jobs=jobs,
        exhaustive=exhaustive,
    )
    with progress_bar(op) as progress:
        tuning = tune(task, progress=progress, require=require)
    mode = Mode(dry_run=dry_run, diff=diff, check=False, json=json)
    changes = mode.carry_out(host.root, lambda: tuning.changes(operator))
    if json:
        files = [described(change) for change in changes.changes]
        document = documents.tuning(host, operator, tuning, written=mode.writes, files=files)
        console.document({**document, "diff": changes.diff()} if diff else document)
        return
    if not diff:
        TextReport().tuning(tuning)
    mode.report(changes, operator=op, following=[f"tilewright verify {op}", f"tilewright bench {op}"])


def _read_sizes(path: Path) -> "Sequence[Size]":
    """Sizes of a file, separated by white space; a line that begins with # is a comment."""
    from tilewright.errors import UsageError

    lines = path.read_text(encoding="utf-8").splitlines()
    words = [word for line in lines if not line.lstrip().startswith("#") for word in line.split()]
    try:
        sizes = [tuple(map(int, word.lower().split("x"))) for word in words]
    except ValueError:
        sizes = []
    if not sizes:
        raise UsageError(
            f"{path} has no sizes, or others than numbers joined by x",
            expected="expected one or more such as 4096x4096x64",
        )
    return sizes
