"""`tilewright bench`: time operators beside their peers."""

from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli.exits import Exit

STDOUT = Path("-")


def bench(
    ops: Annotated[list[str] | None, typer.Argument(metavar="OP", help="Default: all.")] = None,
    against: Annotated[
        str,
        typer.Option(
            metavar="PEER,...",
            help="torch, compile (torch.compile), tilegym, liger or any registered backend; default: all.",
        ),
    ] = "",
    dtypes: Annotated[str, typer.Option(help="Of those in the benchmark; default: all.")] = "",
    backward: Annotated[
        bool, typer.Option("--backward", help="Time the gradients; default: of all operators that have some.")
    ] = False,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", min=1, help="Processes that compile at once, before any of them measures in its turn."
        ),
    ] = 1,
    json: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the measurements to FILE as JSON, after each operator; - is stdout."),
    ] = None,
) -> None:
    """Time operators beside their peers, after a check of each result, as fractions of what the GPU can do."""
    from tilewright.bench.run import Bench
    from tilewright.bench.run import has_gradients
    from tilewright.bench.surroundings import surroundings
    from tilewright.cli import console
    from tilewright.cli.progress import progress_bar
    from tilewright.cli.target import require_host
    from tilewright.errors import NothingRanError
    from tilewright.errors import UsageError
    from tilewright.model.measurement import OperatorBenchmark
    from tilewright.render.answers import parse_dtypes
    from tilewright.report import json as documents
    from tilewright.report.text import TextReport
    from tilewright.verify.device import require_gpu
    from tilewright.verify.operators import choose
    from tilewright.verify.operators import find_operators

    if json and json != STDOUT and not json.parent.is_dir():
        raise UsageError(f"{json.parent} is not a folder", expected="expected --json FILE in a folder that exists")
    host = require_host()
    chosen = choose(find_operators(host), ops or [], host)
    chosen = [operator for operator in chosen if "benchmark" not in operator.skip]
    if backward and not ops:
        chosen = [operator for operator in chosen if has_gradients(operator)]
    if not chosen:
        raise NothingRanError(f"{host.root} has no operator to time.", hint="Add one: tilewright new my_op")
    require_gpu("time operators on", otherwise="what is missing here: tilewright doctor")
    names = [name.strip() for name in against.split(",")] if against else None
    text = None if json == STDOUT else TextReport()
    measured: list[OperatorBenchmark] = []

    def document() -> dict[str, object]:
        contestants = {m.contestant for b in measured for c in b.comparisons for m in c.measurements}
        return documents.bench(host, surroundings(**run.gpu, contestants=contestants), measured)

    # After each operator, so that a run that is ended keeps what it has; but a pipe takes one document
    growing = json and json != STDOUT and (json.is_file() or not json.exists())
    with progress_bar("bench") as progress:
        run = Bench(host, against=names, dtypes=parse_dtypes(dtypes), backward=backward, jobs=jobs, progress=progress)
        for benchmark in run.run(chosen):
            measured.append(benchmark)
            if text:
                text.benchmark(benchmark)
            if json and growing:
                _replace(json.resolve(), _serialized(document()))
    if json == STDOUT:
        console.document(document())
    elif json and not growing:
        json.write_text(_serialized(document()), encoding="utf-8")
    if text:
        console.message(f"{run.gpu['gpu']}, driver {run.gpu['driver']}")
    if any(benchmark.failed for benchmark in measured):
        raise typer.Exit(Exit.FINDINGS)


def _serialized(document: dict[str, object]) -> str:
    import json as serializer

    return serializer.dumps(document, indent=1) + "\n"


def _replace(path: Path, text: str) -> None:
    """Replace the file as a whole, so that nobody finds half of it."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
