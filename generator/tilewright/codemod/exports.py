"""Entries of an `__all__` list, as long or as short as its author likes to write it."""

import re

import libcst as cst

from tilewright.codemod.source import Edit
from tilewright.codemod.source import Source

_COMMA_ENDS_LINE = re.compile(r"\s*,\s*(#.*)?")
_ENTRY_FILLS_LINE = re.compile(r"\s*(\"\w+\"|'\w+')\s*,?\s*(#.*)?")


def entry(names: cst.List, name: str) -> int | None:
    """Index of the name in the list."""
    for index, element in enumerate(names.elements):
        if isinstance(element.value, cst.SimpleString) and element.value.evaluated_value == name:
            return index
    return None


def added(source: Source, names: cst.List, name: str) -> Edit:
    """Append the name: on a line of its own where the last one has that, else in the same line."""
    if not names.elements:
        place = source.start(names) + 1
        return Edit(place, place, f'"{name}"')
    last = names.elements[-1].value
    start = source.line_start(source.start(last))
    indent = source.text[start : source.start(last)]
    if indent.strip():
        place = source.end(last)
        return Edit(place, place, f', "{name}"')
    end = source.line_end(source.end(last))
    if _COMMA_ENDS_LINE.fullmatch(source.text, source.end(last), end):
        return Edit(end, end, f'{source.newline}{indent}"{name}",')
    # No comma after the last entry: a line above it needs no change of that one.
    return Edit(start, start, f'{indent}"{name}",{source.newline}')


def removed(source: Source, names: cst.List, index: int) -> Edit:
    """Take out an entry, and its line where it has one."""
    values = [element.value for element in names.elements]
    start, end = source.start(values[index]), source.end(values[index])
    line_start, line_end = source.line_start(start), source.line_end(end)
    if _ENTRY_FILLS_LINE.fullmatch(source.text, line_start, line_end):
        return Edit(line_start, source.next_line(end))
    if index > 0:
        return Edit(source.end(values[index - 1]), end)
    if len(values) > 1:
        return Edit(start, source.start(values[1]))
    return Edit(start, source.end(names) - 1 if isinstance(names.elements[0].comma, cst.Comma) else end)
