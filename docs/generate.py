"""Write the reference pages that follow from the code, the template and the schemas: python docs/generate.py."""

from collections.abc import Iterator
from pathlib import Path

from writers.commands import commands
from writers.documents import documents
from writers.errors import errors
from writers.families import families
from writers.performance import performance
from writers.rules import rules

REFERENCE = Path(__file__).with_name("reference")


def main() -> None:
    """Write every page."""
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """The text of every page, by its name in `docs/reference`."""
    return {
        "cli.md": _page("Command line", "the commands themselves", commands()),
        "families.md": _page("Families and functions", "`template/_partials`", families()),
        "rules.md": _page("Rules", "`generator/tilewright/rules`", rules()),
        "errors.md": _page("Errors", "`generator/tilewright/explain/errors`", errors()),
        "performance.md": _page("Performance", "`benchmarks/results`", performance()),
        "json.md": _page("JSON documents", "the schemas in `generator/tilewright/report/schemas`", documents()),
    }


def _page(title: str, source: str, lines: Iterator[str]) -> str:
    note = f"Generated from {source}: do not edit it, run `python docs/generate.py`."
    return "\n".join([f"# {title}", "", f"> {note}", "", *lines]).rstrip() + "\n"


if __name__ == "__main__":
    main()
