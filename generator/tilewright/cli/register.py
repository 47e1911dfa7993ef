"""`tilewright register`: put an operator into TileGym's shared files, as far as it is not there."""

from typing import Annotated

import typer

from tilewright.cli.changes import Check
from tilewright.cli.changes import Diff
from tilewright.cli.changes import DryRun
from tilewright.cli.changes import Mode
from tilewright.cli.console import Json


def register(
    op: Annotated[str, typer.Argument(help="Name of the operator.")],
    dry_run: DryRun = False,
    diff: Diff = False,
    check: Check = False,
    json: Json = False,
) -> None:
    """Register an operator in TileGym, or mend a registration that is incomplete."""
    from tilewright.cli.plans import plan_register
    from tilewright.cli.target import require_host
    from tilewright.render import locate

    host, source = require_host(), locate()
    mode = Mode(dry_run=dry_run, diff=diff, check=check, json=json)
    changes = mode.carry_out(host.root, lambda: plan_register(source, op, host))
    mode.report(changes, operator=op, following=[f"tilewright verify {op}"])
