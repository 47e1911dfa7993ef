"""Every command that a page shows runs, and prints what the page says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .blocks import Command
from .blocks import first_missing
from .blocks import read_blocks
from .blocks import read_commands
from .sandbox import ROOT
from .sandbox import run

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
STARTS = {"README.md": "tilewright"}  # elsewhere the commands start in the folder around the checkout
NOT_RUN = {
    ("README.md", "make verify"): "runs the tests that run this page",
}
SLOW = {
    "docs/how-to/add-to-tilegym.md",
    "docs/how-to/update-an-operator.md",
    "docs/how-to/what-went-wrong.md",
    "docs/tutorial.md",
}
LANGUAGES = {"console", "python", "text", "yaml"}  # a command in any other kind of block would not be run


def pages_with_commands() -> list[Any]:
    """Their names; the long ones are run before a release only."""
    names = [name for page, name in zip(PAGES, NAMES, strict=True) if read_commands(page)]
    return [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in names]


@pytest.mark.parametrize("name", pages_with_commands())
def test_commands_do_what_the_page_says(name: str, lay_out: Callable[[list[str]], Path]) -> None:
    commands = [command for command in read_commands(ROOT / name) if (name, command.text) not in NOT_RUN]
    typed = [command.text for command in commands]
    folder = lay_out(typed)
    results = run(typed, folder / STARTS.get(name, "."), folder / "tilewright")
    assert len(results) == len(commands), f"{name}: the shell ended early"
    for position, (command, result) in enumerate(zip(commands, results, strict=True)):
        place = f"{name}:{command.line} $ {command.text}\n{result.output}"
        missing = first_missing(command.expected, result.output)
        assert missing is None, f"{place}\nhas no line: {missing}"
        assert result.status == 0 or _is_status_shown(commands[position + 1 :]), f"{place}\nstatus {result.status}"


def _is_status_shown(following: list[Command]) -> bool:
    return bool(following) and following[0].text == "echo $?"


def test_only_commands_of_the_pages_are_not_run() -> None:
    commands = {
        (name, command.text) for page, name in zip(PAGES, NAMES, strict=True) for command in read_commands(page)
    }
    assert NOT_RUN.keys() <= commands


@pytest.mark.parametrize("name", NAMES)
def test_no_command_hides_in_another_kind_of_block(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = read_blocks(ROOT / name)
    assert text.count("```") == 2 * len(blocks), "a fence is indented, or has no language"
    for block in blocks:
        assert block.language in LANGUAGES, f"line {block.line}"
        assert block.language == "console" or not any(line.startswith("$ ") for line in block.lines)
