"""Imports of one name each, and the place where isort wants a new one among its siblings."""

import re
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.helpers import get_full_name_for_node

from tilewright.codemod.source import Edit
from tilewright.codemod.source import Source


@dataclass(frozen=True)
class Import:
    """`from MODULE import NAME`, or `import NAME` where the module is empty."""

    module: str
    name: str

    @property
    def code(self) -> str:
        """The statement."""
        return f"from {self.module} import {self.name}" if self.module else f"import {self.name}"

    @property
    def imports_module(self) -> bool:
        """Whether it is one of the `import x` and `from . import x` lines, which isort puts first."""
        return self.module in ("", ".")

    @property
    def sort_key(self) -> tuple[object, ...]:
        """The order of isort: modules by name, in a module constants, then classes, then the rest."""
        kind = 0 if self.name.isupper() else 1 if self.name[0].isupper() else 2
        return bool(self.module), _natural(self.module), kind, _natural(self.name)


@dataclass(frozen=True)
class ImportLine:
    """A statement that imports; `what` is the first of its names."""

    what: Import
    node: cst.SimpleStatementLine
    plain: bool  # it imports nothing else and renames nothing

    @property
    def comment(self) -> str:
        """The comment at the end of its line."""
        comment = self.node.trailing_whitespace.comment
        return comment.value if comment else ""


def _natural(name: str) -> list[tuple[str, int]]:
    # conv2d sorts before conv10d.
    tokens = re.findall(r"\d+|\D", name.lower())
    return [("0", int(token)) if token.isdecimal() else (token, 0) for token in tokens]


def import_lines(statements: Iterable[cst.BaseStatement]) -> list[ImportLine]:
    """The statements that import."""
    lines = []
    for statement in statements:
        match statement:
            case cst.SimpleStatementLine(body=[cst.Import(names=[alias, *others])]):
                module = ""
            case cst.SimpleStatementLine(body=[cst.ImportFrom(module=source, names=[alias, *others], relative=dots)]):
                module = "." * len(dots) + (get_full_name_for_node(source) or "" if source else "")
            case _:
                continue
        plain = not others and alias.asname is None
        lines.append(ImportLine(Import(module, alias.evaluated_name), statement, plain))
    return lines


def added(source: Source, siblings: Sequence[ImportLine], new: Import, comment: str = "") -> Edit:
    """Insert an import in sorted place; a comment above the first of a group stays above it."""
    index = next((i for i, line in enumerate(siblings) if line.what.sort_key > new.sort_key), len(siblings))
    neighbour = siblings[max(index - 1, 0)]
    start = source.line_start(source.start(neighbour.node))
    indent = source.text[start : source.start(neighbour.node)]
    follows = index > 0 and neighbour.what.imports_module == new.imports_module
    if follows or index == len(siblings):
        place = source.line_end(source.end(neighbour.node))
        return Edit(place, place, f"{source.newline}{indent}{new.code}{comment}")
    place = source.line_start(source.start(siblings[index].node))
    return Edit(place, place, f"{indent}{new.code}{comment}{source.newline}")


def removed(source: Source, line: ImportLine) -> Edit:
    """Take out the whole line."""
    return Edit(source.line_start(source.start(line.node)), source.next_line(source.end(line.node)))
