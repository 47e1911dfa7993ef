"""The fenced blocks of a page, and the commands in those that show a terminal."""

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = "$ "
CONTINUED = "> "


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block."""

    language: str
    line: int  # of the first line inside
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Command:
    """What a reader types, and the lines that the page says will appear."""

    line: int
    text: str
    expected: tuple[str, ...]


def read_blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            language=match["language"],
            line=text.count("\n", 0, match.start("body")) + 1,
            lines=tuple(match["body"].splitlines()),
        )
        for match in FENCE.finditer(text)
    ]


def read_commands(page: Path) -> list[Command]:
    """The commands of all `console` blocks of a page, in order."""
    return [command for block in read_blocks(page) if block.language == "console" for command in _commands(block)]


def _commands(block: Block) -> list[Command]:
    assert block.lines[0].startswith(PROMPT), f"line {block.line}: a console block starts with a prompt"
    commands: list[tuple[int, list[str], list[str]]] = []
    for number, line in enumerate(block.lines, start=block.line):
        if line.startswith(PROMPT):
            commands.append((number, [line.removeprefix(PROMPT)], []))
            continue
        _, typed, expected = commands[-1]
        if line.startswith(CONTINUED) and not expected:
            typed.append(line.removeprefix(CONTINUED))
        else:
            expected.append(line.rstrip())
    return [
        Command(line=number, text="\n".join(typed), expected=tuple(expected)) for number, typed, expected in commands
    ]


def first_missing(expected: tuple[str, ...], output: str) -> str | None:
    """The first expected line that the output does not have, in order; `...` stands for anything, also for lines."""
    lines = iter(output.splitlines())
    for wanted in (line for line in expected if line != "..."):
        pattern = re.compile(".*".join(map(re.escape, wanted.split("..."))))
        if not any(pattern.fullmatch(line.rstrip()) for line in lines):
            return wanted
    return None
