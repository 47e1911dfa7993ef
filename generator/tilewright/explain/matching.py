"""Find the known errors, and the rules, that a text speaks of."""

import re
from dataclasses import dataclass
from functools import cache

from tilewright.explain.entry import Entry
from tilewright.explain.registry import all_entries

_CODE = re.compile(r"\bTW\d{3}\b")
_SAID_BY_PYTEST = re.compile(r"^E {3}(.*)$", re.MULTILINE)
_FRAME = re.compile(r'^ {2,4}(File )?".*", lines? \d+.*\n(?: {4,}.*(?:\n|\Z))*', re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Match:
    """A known error in a text."""

    entry: Entry
    message: str  # the line of the text that says so


def matches(text: str) -> tuple[Match, ...]:
    """The known errors of a text, the last that it speaks of first: a traceback ends with what was raised.

    Those that fit many texts are left out where a particular one is found.
    """
    text = _messages(text)
    found = []
    for entry in all_entries().values():
        places = list(_compiled(entry.pattern).finditer(text))
        if places:
            place = places[-1]
            found.append((place.start(), Match(entry=entry, message=_line(text, place.start()))))
    found.sort(key=lambda each: -each[0])
    particular = [match for _, match in found if not match.entry.general]
    return tuple(particular or [match for _, match in found])


def codes(text: str) -> tuple[str, ...]:
    """Codes of rules that a text names, each once."""
    return tuple(dict.fromkeys(_CODE.findall(text)))


def _messages(text: str) -> str:
    """The text without the source that a traceback shows: a kernel may well contain the words of a message."""
    said = _SAID_BY_PYTEST.findall(text)
    return "\n".join(said) if said else _FRAME.sub("", text)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _line(text: str, start: int) -> str:
    begin = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    return text[begin : len(text) if end < 0 else end].strip()
