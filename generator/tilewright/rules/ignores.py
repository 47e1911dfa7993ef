"""`# tw: ignore[TW203] reason`: which findings a comment takes back, and what is wrong with such comments."""

import ast
import re
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field

from tilewright.rules.comments import Comment
from tilewright.rules.source import Module

_IGNORE = re.compile(r"#\s*tw:\s*ignore\s*(?:\[(?P<codes>[^\]]*)\])?\s*(?P<reason>[^#]*)")


@dataclass(eq=False)
class Ignore:
    """One comment."""

    comment: Comment
    codes: tuple[str, ...]  # as written
    reason: str
    lines: range  # of the findings that it takes back
    used: set[str] = field(default_factory=set)  # codes that took something back

    def covers(self, code: str, line: int) -> bool:
        """Whether a finding is taken back."""
        return line in self.lines and code in self.codes


def ignores(module: Module) -> list[Ignore]:
    """All ignore comments of a file."""
    if "tw:" not in module.text:
        return []
    statements = _statement_lines(module)
    found = []
    for comment in module.comments:
        match = _IGNORE.match(comment.text)
        if match:
            codes = tuple(code.strip() for code in (match["codes"] or "").split(",") if code.strip())
            line = _next_code_line(module, comment.line) if comment.alone else comment.line
            lines = statements.get(line, range(line, line + 1))
            found.append(Ignore(comment, codes, match["reason"].strip(" -:"), lines))
    return found


def _next_code_line(module: Module, line: int) -> int:
    following: Sequence[str] = module.lines[line:]
    for offset, text in enumerate(following, start=line + 1):
        if text.strip() and not text.strip().startswith("#"):
            return offset
    return line


def _statement_lines(module: Module) -> dict[int, range]:
    """The lines of the innermost statement on each line; of a compound statement only its head."""
    found: dict[int, range] = {}
    for first, last in sorted(_extents(module), key=lambda extent: extent[0] - extent[1]):
        found.update(dict.fromkeys(range(first, last + 1), range(first, last + 1)))
    return found


def _extents(module: Module) -> Iterator[tuple[int, int]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            decorators = getattr(node, "decorator_list", None)
            first = min([node.lineno, *(each.lineno for each in decorators or ())])
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
            yield first, last
