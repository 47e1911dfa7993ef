"""Where output goes: results to stdout, everything else to stderr, questions only to a person."""

import json
import sys
from collections.abc import Mapping
from typing import Annotated
from typing import Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def result(text: str) -> None:
    """What the command was asked for."""
    print(text)


def message(text: str) -> None:
    """What a person may want to know besides."""
    print(text, file=sys.stderr)


def document(content: Mapping[str, Any]) -> None:
    """The result for a machine."""
    print(json.dumps(content, indent=2, ensure_ascii=False))


def has_terminal() -> bool:
    """Whether somebody is there to answer a question."""
    # Each is None where the command was started with it closed.
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
