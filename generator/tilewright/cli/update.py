"""`tilewright update`: move operators to a newer template and keep what their owners wrote."""

from enum import StrEnum
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from tilewright.cli.changes import Diff
from tilewright.cli.changes import DryRun
from tilewright.cli.console import Json
from tilewright.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewright.model.host import Host
    from tilewright.update import Plan

WHAT = "What it updates"
CONFLICTS = "Conflicts"


class HowToSettle(StrEnum):
    """What is written where owner and template changed the same lines."""

    INLINE = "inline"
    REJ = "rej"
    OURS = "ours"
    THEIRS = "theirs"


def update(
    ops: Annotated[list[str] | None, typer.Argument(metavar="OP", help="Operators to update.")] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Every operator of the repository.", rich_help_panel=WHAT)
    ] = False,
    to: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Default: the installed version.", rich_help_panel=WHAT),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", metavar="KEY=VALUE", help="Another answer of the template.", rich_help_panel=WHAT),
    ] = None,
    dry_run: DryRun = False,
    diff: Diff = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only say what is behind; exit with 1 if anything is.")
    ] = False,
    conflict: Annotated[
        HowToSettle,
        typer.Option(
            help="Both sides between markers, the owner's in a .rej file, or one side.", rich_help_panel=CONFLICTS
        ),
    ] = HowToSettle.INLINE,
    continue_: Annotated[
        bool,
        typer.Option(
            "--continue", help="Finish an update that has conflicts or was killed.", rich_help_panel=CONFLICTS
        ),
    ] = False,
    abort: Annotated[
        bool, typer.Option("--abort", help="Take such an update back, every byte.", rich_help_panel=CONFLICTS)
    ] = False,
    json: Json = False,
) -> None:
    """Merge what changed in the template into operators, all at once; the changes are left staged."""
    from tilewright.cli import console
    from tilewright.cli.progress import progress_bar
    from tilewright.cli.target import require_host
    from tilewright.errors import NothingRanError
    from tilewright.errors import UsageError
    from tilewright.render import locate
    from tilewright.render.answers import parse_data
    from tilewright.render.answers import read_questions
    from tilewright.report import updates
    from tilewright.update import carry_out
    from tilewright.update import own_version
    from tilewright.update import plan_update
    from tilewright.update import read_behind
    from tilewright.update import recorded_operators
    from tilewright.update import refuse_if_begun
    from tilewright.update import tag

    host, source = require_host(), locate()
    if continue_ or abort:
        if (continue_ and abort) or ops or all_ or to or data or dry_run or diff or check:
            raise UsageError(
                "--continue and --abort are about the update that has begun",
                expected="expected one of them, and no operators or other options",
            )
        if continue_:
            _continue(host, json=json)
        else:
            _abort(host, json=json)
        return
    chosen = _choose(ops or (), recorded_operators(host), everything=all_ or check)
    if not chosen:
        raise NothingRanError(f"{host.root} has no operator that was made with the template.", hint="tilewright status")
    if check:
        if data:
            raise UsageError(
                "--check and --data together",
                expected="expected one of them",
                hint="to see what other answers would change: --diff",
            )
        target = tag(to) if to else own_version(source)
        behind = read_behind(host, source, chosen, target=target)
        if json:
            console.document(updates.behind_document(host, behind, target))
        else:
            console.result("\n".join(updates.behind_lines(behind, len(chosen), target)))
        if behind:
            raise typer.Exit(Exit.FINDINGS)
        return
    changed = parse_data(data or (), read_questions(source.template))
    writes = not (dry_run or diff)
    if writes:
        refuse_if_begun(host.root)
    with progress_bar("rendering", shown=not json) as progress:
        plan = plan_update(host, source, chosen, to=to, changed=changed, strategy=conflict.value, progress=progress)
    written = writes and plan.changes_anything
    if written:
        carry_out(plan)
    if json:
        console.document(updates.document(host, plan, written=written, diff=diff))
    else:
        show(plan, written=writes, diff=diff)
    if plan.conflicts and not plan.is_settled:
        raise typer.Exit(Exit.FINDINGS)


def show(plan: "Plan", *, written: bool, diff: bool) -> None:
    """What an update did, or would do."""
    from tilewright.cli import changes
    from tilewright.cli import console
    from tilewright.report import updates

    if not plan.operators:
        console.message(f"Nothing to do: {_counted(len(plan.current))} at {plan.target}.")
        return
    for line in updates.operator_lines(plan):
        console.message(line)
    if plan.changes and written:
        changes.show(plan.changes)
    elif plan.changes:
        changes.show_pending(plan.changes, diff=diff)
    for line in updates.conflict_lines(plan):
        console.message(line)
    for note in plan.notes:
        console.message(note)
    if written:
        console.message("Next: " + "\n      ".join(updates.following(plan)))


def _continue(host: "Host", *, json: bool) -> None:
    from tilewright.cli import console
    from tilewright.report import updates
    from tilewright.update import continue_

    left = continue_(host.root)
    if json:
        console.document(updates.ended_document(host, left.changes, open_=left.conflicts))
    elif left.conflicts:
        paths = "\n  ".join(map(str, left.conflicts))
        console.message(f"The update is in place; to settle:\n  {paths}\nThen: tilewright update --continue")
    else:
        console.message(f"The update to {left.target} is complete and staged.")
    if left.conflicts:
        raise typer.Exit(Exit.FINDINGS)


def _abort(host: "Host", *, json: bool) -> None:
    from tilewright.cli import console
    from tilewright.model.change import ChangeSet
    from tilewright.report import updates
    from tilewright.update import abort

    kept = abort(host.root)
    if json:
        console.document(updates.ended_document(host, ChangeSet(root=host.root), kept=kept))
        return
    console.message("The update was taken back.")
    for path in kept:
        console.message(f"What you edited since is in {path}")


def _choose(names: "Sequence[str]", recorded: "Sequence[str]", *, everything: bool) -> list[str]:
    from tilewright.catalogue.nearest import unknown_name
    from tilewright.errors import UsageError

    for name in names:
        if name not in recorded:
            raise unknown_name(f"{name!r} is no operator that was made with the template", name, recorded)
    if not names and not everything:
        raise UsageError(
            "no operator is named", expected="expected one or more, or --all", hint="to see what is behind: --check"
        )
    return list(dict.fromkeys(names)) or list(recorded)


def _counted(count: int) -> str:
    return "1 operator is" if count == 1 else f"{count} operators are"
