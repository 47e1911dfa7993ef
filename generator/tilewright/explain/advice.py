"""One or two lines of advice about a failure, with the command that tells more."""

from tilewright.explain.entry import Entry
from tilewright.explain.explanation import explain_text


def advise(text: str) -> tuple[str, ...]:
    """What to look at first where a step failed with this text; nothing where nothing is known of it."""
    found = explain_text(text)
    if found.errors:
        return advise_on(found.errors[0].entry)
    return tuple(f"{rule.advice} (tilewright explain {rule.code})" for rule in found.rules[:2])


def advise_on(entry: Entry) -> tuple[str, ...]:
    """The title, and the most likely cause."""
    first = entry.causes[0]
    return (f"{entry.title} (tilewright explain {entry.name})", f"most likely: {first.what}; {first.tell}")
