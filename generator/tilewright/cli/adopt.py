"""`tilewright adopt`: have an operator that was written by hand updated like those that were made."""

from typing import Annotated

import typer

from tilewright.cli.changes import Check
from tilewright.cli.changes import Diff
from tilewright.cli.changes import DryRun
from tilewright.cli.changes import Mode
from tilewright.cli.console import Json


def adopt(
    op: Annotated[str, typer.Argument(help="Name of the operator.")],
    family: Annotated[str, typer.Option(help="See `tilewright list`.")],
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", metavar="KEY=VALUE", help="Answer of the template that is known."),
    ] = None,
    dry_run: DryRun = False,
    diff: Diff = False,
    check: Check = False,
    json: Json = False,
) -> None:
    """Record an operator written by hand as made from the template, by the answers that come closest to it."""
    from tilewright.cli import console
    from tilewright.cli.target import require_host
    from tilewright.render import complete
    from tilewright.render import locate
    from tilewright.render.answers import parse_data
    from tilewright.render.answers import read_questions
    from tilewright.update.adopt import closest
    from tilewright.update.adopt import plan_adopt

    host, source = require_host(), locate()
    given = parse_data(data or (), read_questions(source.template))
    given = complete(source, {**given, "op": op, "family": family})
    found = closest(host, source, given)
    mode = Mode(dry_run=dry_run, diff=diff, check=check, json=json)
    changes = mode.carry_out(host.root, lambda: plan_adopt(host, found))
    if not json:
        answers = ", ".join(f"{key}={value}" for key, value in found.answers.items() if key in found.tried)
        console.message(f"Closest: {found.likeness:.0%} of the lines are as {answers or family} makes them.")
    mode.report(changes, operator=op, following=["tilewright update --check"])
