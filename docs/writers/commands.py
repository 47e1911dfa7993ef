"""The page on the command line, from the commands themselves."""

from collections.abc import Iterator
from typing import Any

import typer

from tilewright.cli.app import app
from writers.tables import table


def commands() -> Iterator[str]:
    """Every verb with its arguments and options."""
    group: Any = typer.main.get_command(app)
    yield from ("`tilewright VERB --help` shows the same in a terminal. Options that stand before the verb:", "")
    yield from table("option", "what it does", rows=map(_parameter, group.params))
    for name, command in group.commands.items():
        arguments = " ".join(_placeholder(parameter) for parameter in command.params if not _is_option(parameter))
        yield from (f"## tilewright {name}", "", command.help, "")
        yield from ("```text", f"tilewright {name} [OPTIONS] {arguments}".rstrip(), "```", "")
        yield from table("argument or option", "what it does", rows=map(_parameter, command.params))
    yield "Exit statuses: [exit-codes.md](exit-codes.md). Documents of `--json`: [json.md](json.md)."


def _parameter(parameter: Any) -> tuple[str, str]:
    if not _is_option(parameter):
        return f"`{_placeholder(parameter)}`", parameter.help
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    value = "" if parameter.is_flag else f" `{parameter.metavar or parameter.opts[0].lstrip('-').upper()}`"
    notes = [parameter.help]
    if parameter.default and not parameter.is_flag:
        default = parameter.default if isinstance(parameter.default, str) else f"{parameter.default:g}"
        notes.append(f"Default: {default}.")
    if parameter.multiple:
        notes.append("May be given several times.")
    return f"{names}{value}", " ".join(notes)


def _is_option(parameter: Any) -> bool:
    return bool(parameter.opts[0].startswith("-"))


def _placeholder(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name.upper()).strip("[].")
    return (name if parameter.required else f"[{name}]") + ("..." if parameter.nargs == -1 else "")
