"""The reference pages say what the code says."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

from tilewright import errors
from tilewright.catalogue.families import read_families
from tilewright.cli.exits import Exit
from tilewright.render import locate
from tilewright.render import render

from .blocks import read_blocks
from .sandbox import ROOT

REFERENCE = ROOT / "docs/reference"
FIRST_CELL = re.compile(r"^\| `?([^`|]+?)`? \|", re.MULTILINE)


def first_cells(text: str) -> list[str]:
    """What the rows of the tables in a text are about."""
    return [cell for cell in FIRST_CELL.findall(text) if cell not in ("file", "status", "family")]


def section(text: str, heading: str) -> str:
    """The text below a heading, to the next of its kind."""
    return re.split(r"^## ", text.partition(f"## {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def test_generated_pages_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")  # as for a script there
    pages = runpy.run_path(str(ROOT / "docs/generate.py"))["pages"]()
    stale = [name for name, text in pages.items() if (REFERENCE / name).read_text(encoding="utf-8") != text]
    assert not stale, "run: python docs/generate.py"


def test_every_parameter_is_described_from_the_first_word() -> None:
    rows = [line for line in (REFERENCE / "families.md").read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    assert [row for row in rows if "|  " in row] == []


@pytest.mark.parametrize(
    ("layout", "heading"),
    [("standalone", "In a repository of your own"), ("tilegym", "In TileGym"), ("single_file", "As one file")],
)
def test_every_rendered_file_is_explained(layout: str, heading: str, tmp_path: Path) -> None:
    rendering = render(locate(), {"op": "my_op", "layout": layout}, tmp_path)
    page = (REFERENCE / "files.md").read_text(encoding="utf-8")
    assert sorted(first_cells(section(page, heading))) == sorted(str(file.path) for file in rendering.files)


def test_every_exit_status_is_explained() -> None:
    page = (REFERENCE / "exit-codes.md").read_text(encoding="utf-8")
    assert [int(cell) for cell in first_cells(page)] == sorted(Exit)
    assert {error.exit_code for error in vars(errors).values() if isinstance(error, type)} <= set(Exit)


def test_the_layers_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (block, *_) = read_blocks(ROOT / "docs/explanation/layers.md")
    assert [re.split(r" {2,}", line)[0] for line in block.lines] == contracts[0]["layers"]


def test_the_readme_has_every_family() -> None:
    families = section((ROOT / "README.md").read_text(encoding="utf-8"), "Families")
    rows = [line for line in families.splitlines() if line.startswith("| `")]
    assert sorted(first_cells(families)) == [family.name for family in read_families(locate().partials)]
    for family in read_families(locate().partials):
        (row,) = (row for row in rows if row.startswith(f"| `{family.name}`"))
        assert row.endswith("| yes |" if family.backward else "| no |")
        assert all(f"`{variant.name}`" in row for variant in family.variants)


def test_the_page_on_gradients_says_which_families_have_one() -> None:
    page = (ROOT / "docs/how-to/need-a-gradient.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w, ]+) \| (.+) \|$", page, re.MULTILINE)[1:]
    said = {name: gradient != "none" for names, gradient in rows for name in names.split(", ")}
    assert said == {family.name: family.backward for family in read_families(locate().partials)}


def test_the_readme_shows_files_that_are_rendered(tmp_path: Path) -> None:
    rendered = {str(file.path) for file in render(locate(), {"op": "my_op"}, tmp_path).files}
    shown = re.findall(r"^(\S+/\S+) {2,}\S", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(shown) == 6
    assert set(shown) <= rendered
