"""The command line: its verbs in panels, the options that all of them have, and its exit codes."""

import signal
import sys
from typing import Annotated
from typing import Any

import typer
from typer.core import TyperCommand
from typer.core import TyperGroup

from tilewright import __version__
from tilewright.cli import exits
from tilewright.cli.adopt import adopt
from tilewright.cli.bench import bench
from tilewright.cli.check import check
from tilewright.cli.compile import compile_
from tilewright.cli.detach import detach
from tilewright.cli.doctor import doctor
from tilewright.cli.explain import explain
from tilewright.cli.list import list_
from tilewright.cli.new import new
from tilewright.cli.register import register
from tilewright.cli.remove import remove
from tilewright.cli.run import run
from tilewright.cli.status import status
from tilewright.cli.tune import tune
from tilewright.cli.update import update
from tilewright.cli.verify import verify
from tilewright.errors import UsageError

EPILOG = """Examples:

tilewright new rms_norm --family row_norm

tilewright new swish --formula "x * sigmoid(beta * x), beta=1.0" --backward

tilewright verify swish"""


class Verb(TyperCommand):
    """A command whose errors are messages."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with exits.errors_as_messages(debug=ctx.find_root().params["debug"]):
            _finish_interrupted_command()
            return super().invoke(ctx)


class Verbs(TyperGroup):
    """All commands; `--debug` may stand anywhere."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move `--debug` to where it is declared."""
        own, of_script = _without_arguments_of_script(args)
        if "--debug" in own:
            own = ["--debug", *(arg for arg in own if arg != "--debug")]
        return super().parse_args(ctx, own + of_script)


def _without_arguments_of_script(args: list[str]) -> tuple[list[str], list[str]]:
    """The arguments of tilewright, and those of a script that it runs."""
    verb = next((place for place, arg in enumerate(args) if not arg.startswith("-")), len(args))
    if args[verb : verb + 1] != ["run"]:
        return args, []
    end = verb + 1
    while end < len(args) and args[end].startswith("-"):
        end += 2 if args[end] == "--arch" else 1
    return args[:end], args[end:]


app = typer.Typer(
    cls=Verbs,
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_SETTINGS = {"run": {"allow_interspersed_args": False}}  # what follows a script is for the script
for panel, name, function in (
    ("Create", "new", new),
    ("Create", "remove", remove),
    ("Create", "register", register),
    ("Create", "update", update),
    ("Create", "detach", detach),
    ("Create", "adopt", adopt),
    ("Understand", "list", list_),
    ("Understand", "status", status),
    ("Understand", "doctor", doctor),
    ("Understand", "explain", explain),
    ("Check", "check", check),
    ("Check", "compile", compile_),
    ("Check", "verify", verify),
    ("Check", "run", run),
    ("Measure", "bench", bench),
    ("Measure", "tune", tune),
):
    app.command(name, cls=Verb, rich_help_panel=panel, context_settings=_SETTINGS.get(name))(function)


def _show_version(value: bool) -> None:
    if value:
        print(f"tilewright {__version__}")
        raise typer.Exit


@app.callback()
def tilewright(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Add cuTile GPU operators to a repository, check them and keep them up to date with their template."""


def _finish_interrupted_command() -> None:
    """Whatever runs next after a kill sees all of an operator or nothing of it."""
    from pathlib import Path

    from tilewright.changes import recover

    try:
        here = Path.cwd()
    except FileNotFoundError as error:
        raise UsageError("the current folder does not exist any more", hint="go to one that does: cd") from error
    for folder in (here, *here.parents):
        recover(folder)


def _end(number: int, _frame: object) -> None:
    """An orderly end: what was begun is undone, and child processes are ended."""
    raise SystemExit(128 + number)


def main() -> None:
    """Run the command line."""
    signal.signal(signal.SIGTERM, _end)
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(exits.Exit.INTERRUPTED)
    except OSError as error:  # the help and the version are written outside of any verb
        sys.exit(exits.report(error))
