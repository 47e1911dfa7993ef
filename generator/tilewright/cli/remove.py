"""`tilewright remove`: take an operator out again, with everything that only it needs."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Annotated

import typer

from tilewright.cli.changes import Check
from tilewright.cli.changes import Diff
from tilewright.cli.changes import DryRun
from tilewright.cli.changes import Mode
from tilewright.cli.console import Json


def remove(
    op: Annotated[str, typer.Argument(help="Name of the operator.")],
    force: Annotated[bool, typer.Option("--force", "-f", help="Also files that were edited.")] = False,
    dry_run: DryRun = False,
    diff: Diff = False,
    check: Check = False,
    json: Json = False,
) -> None:
    """Remove an operator and, in TileGym, its registration."""
    from tilewright.cli.plans import plan_remove
    from tilewright.cli.target import require_host
    from tilewright.render import locate

    host, source = require_host(), locate()
    mode = Mode(dry_run=dry_run, diff=diff, check=check, json=json)
    _, edited = plan_remove(source, op, host)
    if edited and mode.writes and not force:
        _confirm(op, edited, may_ask=not json)
    changes = mode.carry_out(host.root, lambda: plan_remove(source, op, host)[0])
    mode.report(changes, operator=op)


def _confirm(op: str, edited: Sequence[PurePosixPath], *, may_ask: bool) -> None:
    from tilewright.cli import console
    from tilewright.errors import UsageError

    paths = ", ".join(map(str, edited))
    if may_ask and console.has_terminal():
        import questionary

        if questionary.confirm(f"Remove {paths} with all edits?", default=False).unsafe_ask():
            return
    raise UsageError(
        f"{paths}: edited, or made by another version of the template",
        expected="expected files as the template makes them, which can be made again",
        hint=f"to remove them all the same: tilewright remove {op} --force",
    )
