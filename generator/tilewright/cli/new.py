"""`tilewright new`: add an operator to the repository around the current folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import Any

import typer

from tilewright.cli.changes import Check
from tilewright.cli.changes import Diff
from tilewright.cli.changes import DryRun
from tilewright.cli.changes import Mode
from tilewright.cli.console import Json

if TYPE_CHECKING:
    from tilewright.render import Source

WHAT = "What it computes"
WHERE = "Where it goes"


def new(
    op: Annotated[str | None, typer.Argument(help="Name of the operator, for example rms_norm.")] = None,
    family: Annotated[str | None, typer.Option(help="See `tilewright list`.", rich_help_panel=WHAT)] = None,
    variant: Annotated[str | None, typer.Option(help="Member of the family.", rich_help_panel=WHAT)] = None,
    formula: Annotated[
        str | None, typer.Option(help='Elementwise formula, such as "x * alpha, alpha=1.0".', rich_help_panel=WHAT)
    ] = None,
    grad_formula: Annotated[
        str | None, typer.Option(help="Its gradients, one per tensor, separated by `;`.", rich_help_panel=WHAT)
    ] = None,
    epilogue: Annotated[
        str | None,
        typer.Option(help="Formula over `acc` before a matmul or convolution is stored.", rich_help_panel=WHAT),
    ] = None,
    bias: Annotated[
        bool | None,
        typer.Option("--bias/--no-bias", help="Add a bias to a matmul or convolution.", rich_help_panel=WHAT),
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="Products of fp32: ieee, 3xtf32 or tf32.", rich_help_panel=WHAT)
    ] = None,
    dtypes: Annotated[str | None, typer.Option(help="For example f32,f16,bf16.", rich_help_panel=WHAT)] = None,
    backward: Annotated[
        bool | None, typer.Option("--backward/--no-backward", help="With a gradient.", rich_help_panel=WHAT)
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(metavar="STEP=REASON", help="A step that does not apply, and why.", rich_help_panel=WHAT),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", metavar="KEY=VALUE", help="Answer of the template.", rich_help_panel=WHAT),
    ] = None,
    into: Annotated[
        Path | None, typer.Option(help="Folder in or of the repository; default: here.", rich_help_panel=WHERE)
    ] = None,
    layout: Annotated[
        str | None, typer.Option(help="standalone or tilegym; default: detected.", rich_help_panel=WHERE)
    ] = None,
    package: Annotated[
        str | None, typer.Option(help="Folder of a new host's operators, such as src/my_ops.", rich_help_panel=WHERE)
    ] = None,
    placement: Annotated[
        str | None, typer.Option(help="In TileGym: main or experimental.", rich_help_panel=WHERE)
    ] = None,
    single_file: Annotated[
        bool, typer.Option("--single-file", help="One self-contained file, here.", rich_help_panel=WHERE)
    ] = False,
    dry_run: DryRun = False,
    diff: Diff = False,
    check: Check = False,
    json: Json = False,
) -> None:
    """Add an operator: kernel, dispatch, registration, tests and benchmark."""
    from tilewright.cli import console
    from tilewright.cli import questions
    from tilewright.cli.plans import plan_new
    from tilewright.cli.target import choose_target
    from tilewright.render import complete
    from tilewright.render import locate
    from tilewright.render.answers import parse_data
    from tilewright.render.answers import parse_skips
    from tilewright.render.answers import read_questions
    from tilewright.render.answers import refuse_contradictions

    source = locate()
    options = {
        "op": op,
        "family": family,
        "variant": variant,
        "formula": formula,
        "grad_formula": grad_formula,
        "epilogue": epilogue,
        "bias": bias,
        "precision": precision,
        "dtypes": dtypes,
        "backward": backward,
        "skip": parse_skips(skip) if skip else None,
        "layout": layout,
        "package": package,
        "placement": placement,
    }
    answers = parse_data(data or (), read_questions(source.template))
    given = {name: value for name, value in options.items() if value is not None}
    refuse_contradictions(given, answers, by="--data")
    answers |= given
    if single_file:
        refuse_contradictions({"layout": "single_file"}, answers, by="--single-file")
        answers["layout"] = "single_file"
    root, answers = choose_target(into or Path(), answers, source)
    answers = questions.complete_name(source, answers)
    if console.has_terminal() and not json and not questions.DECIDED & answers.keys():
        answers = questions.ask_answers(source, complete(source, answers), root)
    answers = complete(source, answers)
    _warn_of_newer_operators(source, root)

    mode = Mode(dry_run=dry_run, diff=diff, check=check, json=json)
    changes = mode.carry_out(root, lambda: plan_new(source, answers, root))
    mode.report(changes, operator=answers["op"], following=_following(answers))


def _warn_of_newer_operators(source: "Source", root: Path) -> None:
    """The repository may be ahead of this installation: its other operators then have what the new one lacks."""
    from tilewright.cli import console
    from tilewright.config.versions import is_newer
    from tilewright.update import newest_recorded
    from tilewright.update import own_version

    newest, own = newest_recorded(root), own_version(source)
    if newest and is_newer(newest, own):
        console.message(f"note: operators here are of the template {newest}, this one will be of {own}")
        console.message("      newer: pip install --upgrade tilewright")


def _following(answers: Mapping[str, Any]) -> list[str]:
    """The commands that a person wants to run now."""
    op = answers["op"]
    if answers.get("layout") == "single_file":
        return [f"python {op}.py"]
    return [f"tilewright verify {op}", f'git add -A && git commit -m "Add {op}"']
