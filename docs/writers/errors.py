"""The page on errors, from the entries of `tilewright explain`."""

from collections.abc import Iterator
from textwrap import dedent

from tilewright.explain.entry import Entry
from tilewright.explain.registry import TOPICS
from writers.tables import table


def errors() -> Iterator[str]:
    """A table of each topic, then each error with its causes, and a wrong and a right example."""
    yield from (
        "The messages that `tilewright explain` knows. It takes the name of an error as well.",
        "How to use it: [What went wrong](../how-to/what-went-wrong.md).",
        "",
    )
    for topic in TOPICS:
        yield from (f"## {topic.title}", "", topic.about, "")
        yield from table(
            "name", "what it is", rows=((f"[{each.name}](#{each.name})", each.title) for each in topic.entries)
        )
    yield from ("## Each error", "")
    for topic in TOPICS:
        for entry in topic.entries:
            yield from _entry(entry)


def _entry(entry: Entry) -> Iterator[str]:
    yield from (f"### {entry.name}", "", f"**{entry.title}.**", "")
    yield from ("The text matches:", "", "```text", entry.pattern, "```", "")
    for number, cause in enumerate(entry.causes, start=1):
        yield f"{number}. {cause.what}. *Tell by:* {cause.tell}."
    yield ""
    for title, snippet in (("Wrong:", entry.wrong), ("Right:", entry.right)):
        yield from (title, "", "```python", *dedent(snippet).strip("\n").splitlines(), "```", "")
    if entry.rules:
        codes = ", ".join(f"[{code}](rules.md#{code.lower()})" for code in entry.rules)
        yield from (f"Found before anything runs by {codes}.", "")
