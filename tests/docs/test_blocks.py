"""A page that says something else than what happens is found."""

from pathlib import Path

import pytest

from .blocks import Command
from .blocks import first_missing
from .blocks import read_commands

PAGE = """\
Text.

```console
$ one
first
$ for x in 1; do
>   two
> done
```

```text
$ no command
```
"""


def test_commands_come_with_their_output_and_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert read_commands(page) == [
        Command(line=4, text="one", expected=("first",)),
        Command(line=6, text="for x in 1; do\n  two\ndone", expected=()),
    ]


@pytest.mark.parametrize(
    ("expected", "missing"),
    [
        (("a", "c"), None),
        (("a", "...", "b 1 of ..."), None),
        (("c", "a"), "a"),
        (("b",), "b"),
        (("d",), "d"),
    ],
)
def test_lines_are_expected_whole_and_in_order(expected: tuple[str, ...], missing: str | None) -> None:
    assert first_missing(expected, "a\nb 1 of 2\nc\n") == missing
