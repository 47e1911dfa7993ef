"""`tilewright detach`: take files of an operator over from the template."""

from typing import Annotated

import typer

from tilewright.cli.changes import Check
from tilewright.cli.changes import Diff
from tilewright.cli.changes import DryRun
from tilewright.cli.changes import Mode
from tilewright.cli.console import Json


def detach(
    op: Annotated[str, typer.Argument(help="Name of the operator.")],
    steps: Annotated[list[str], typer.Argument(metavar="STEP", help="stub, kernel, registration, tests or benchmark.")],
    dry_run: DryRun = False,
    diff: Diff = False,
    check: Check = False,
    json: Json = False,
) -> None:
    """Keep steps of an operator out of every `tilewright update`: their files are their owner's from now on."""
    from tilewright.cli.target import require_host
    from tilewright.render import locate
    from tilewright.update.detached import plan_detach

    host, source = require_host(), locate()
    mode = Mode(dry_run=dry_run, diff=diff, check=check, json=json)
    changes = mode.carry_out(host.root, lambda: plan_detach(op, steps, host, source))
    mode.report(changes, operator=op, following=["tilewright status"])
