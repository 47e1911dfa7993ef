"""Every link between the pages leads somewhere."""

import re
from pathlib import Path

import pytest

from .test_console import NAMES
from .test_console import ROOT

LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    for link in LINK.finditer(page.read_text(encoding="utf-8")):
        target = page.parent / link["path"] if link["path"] else page
        assert target.exists(), link[0]
        assert link["anchor"] is None or link["anchor"] in anchors(target), link[0]


def test_every_page_can_be_reached_from_the_readme() -> None:
    waiting, reached = [ROOT / "README.md"], set()
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            links = LINK.finditer(page.read_text(encoding="utf-8"))
            waiting += [(page.parent / link["path"]).resolve() for link in links if link["path"]]
    assert reached >= {(ROOT / name).resolve() for name in NAMES}
