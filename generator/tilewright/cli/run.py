"""`tilewright run`: run a script with its cuTile kernels on the CPU."""

from typing import Annotated

import typer

OneArch = Annotated[str, typer.Option(metavar="SM_XX", help="Architecture that the CPU stands for.")]


def run(
    context: typer.Context,
    script: Annotated[
        list[str], typer.Argument(metavar="SCRIPT", help="A Python script, and after it its own arguments.")
    ],
    module: Annotated[bool, typer.Option("--module", "-m", help="SCRIPT is a module, as for `python -m`.")] = False,
    arch: OneArch = "sm_90",
    check: Annotated[
        bool, typer.Option("--check", help="Look for faults that a GPU does not report; exit with 1 if there are any.")
    ] = False,
) -> None:
    """Run a script with its cuTile kernels on the CPU: inside, there is a CUDA device."""
    from tilewright.interpret.script import run_script

    name, *arguments = script
    debug = context.find_root().params["debug"]
    raise typer.Exit(run_script(name, arguments, module=module, arch=arch, check=check, debug=debug))
