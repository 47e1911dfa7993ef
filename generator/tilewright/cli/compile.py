"""`tilewright compile`: compile the kernels of an operator for every architecture, without a GPU."""

from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli.console import Json
from tilewright.cli.exits import Exit

Arch = Annotated[str, typer.Option(metavar="SM_XX,...", help="Architectures; default: all, sm_80 to sm_121.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Processes at once; default: one per CPU.")]
JUnit = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the results as JUnit XML too.")]


def compile_(
    op: Annotated[str, typer.Argument(help="Name of the operator.")],
    arch: Arch = "",
    dtypes: Annotated[str, typer.Option(help="Of those that the tests cover; default: all.")] = "",
    jobs: Jobs = None,
    timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Limit for one kernel.")] = 60.0,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Compile again although nothing has changed.")] = False,
    json: Json = False,
    junit: JUnit = None,
) -> None:
    """Compile every kernel of an operator and show registers, spilled bytes and shared memory."""
    from tilewright.aot.cache import user_cache
    from tilewright.aot.compile import compile_operator
    from tilewright.cli import console
    from tilewright.cli.progress import progress_bar
    from tilewright.cli.target import require_host
    from tilewright.cutile.targets import select
    from tilewright.errors import NothingRanError
    from tilewright.render.answers import parse_dtypes
    from tilewright.report import json as documents
    from tilewright.report import junit as suites
    from tilewright.report.text import TextReport
    from tilewright.verify.operators import choose
    from tilewright.verify.operators import find_operators

    host, targets = require_host(), select(arch)
    (operator,) = choose(find_operators(host), [op], host)
    with progress_bar(op) as progress:
        result = compile_operator(
            operator,
            targets=targets,
            dtypes=parse_dtypes(dtypes),
            jobs=jobs,
            time_limit=timeout,
            progress=progress,
            cache=None if no_cache else user_cache(),
        )
    if junit:
        suites.write(suites.compilation(result), junit)
    if json:
        console.document(documents.compilation(host, result))
    else:
        TextReport().compilation(result)
        spent = "from the cache" if result.cached else f"{result.seconds:.1f} s"
        console.message(f"{len(result.kernels)} compilations, {len(result.errors)} failed, {spent}")
    if result.errors:
        raise typer.Exit(Exit.FINDINGS)
    if not result.kernels:
        raise NothingRanError(f"{op} launches no kernel.", hint="Give its tests a shape that is not empty.")
