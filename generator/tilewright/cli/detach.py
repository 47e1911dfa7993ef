"""`tilewright detach`: take files of an operator over from the template."""

from typing import TYPE_CHECKING
from typing import Annotated

import typer

from tilewright.cli.changes import Check
from tilewright.cli.changes import Diff
from tilewright.cli.changes import DryRun
from tilewright.cli.changes import Mode
from tilewright.cli.console import Json

if TYPE_CHECKING:
    from tilewright.model.host import Host
    from tilewright.render import Source


def detach(
    op: Annotated[str, typer.Argument(help="Name of the operator.")],
    steps: Annotated[list[str], typer.Argument(metavar="STEP", help="stub, kernel, registration, tests or benchmark.")],
    undo: Annotated[
        bool, typer.Option("--undo", help="Have them updated again; what the template changed since is merged.")
    ] = False,
    dry_run: DryRun = False,
    diff: Diff = False,
    check: Check = False,
    json: Json = False,
) -> None:
    """Keep steps of an operator out of every `tilewright update`, until --undo: their files are their owner's."""
    from tilewright.cli.target import require_host
    from tilewright.render import locate
    from tilewright.update.detached import plan_detach

    host, source = require_host(), locate()
    mode = Mode(dry_run=dry_run, diff=diff, check=check, json=json)
    if undo:
        _undo(op, steps, host, source, mode)
        return
    changes = mode.carry_out(host.root, lambda: plan_detach(op, steps, host, source))
    mode.report(changes, operator=op, following=["tilewright status"])


def _undo(op: str, steps: list[str], host: "Host", source: "Source", mode: Mode) -> None:
    from tilewright.cli import console
    from tilewright.cli.exits import Exit
    from tilewright.cli.update import show
    from tilewright.report import updates
    from tilewright.update import carry_out
    from tilewright.update import plan_catch_up
    from tilewright.update import refuse_if_begun

    if mode.writes:
        refuse_if_begun(host.root)
    plan = plan_catch_up(host, source, op, steps)
    if mode.writes:
        carry_out(plan)
    if mode.json:
        console.document(updates.document(host, plan, written=mode.writes, diff=mode.diff))
    else:
        console.message(f"{op}: no longer detached: {', '.join(steps)}")
        show(plan, written=mode.writes, diff=mode.diff)
    if not plan.is_settled or mode.check:
        raise typer.Exit(Exit.FINDINGS)
