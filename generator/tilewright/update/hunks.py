"""Text that a merge settled, and hunks in which both sides changed the same lines."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

OWNER, TEMPLATE = "owner", "template"


@dataclass(frozen=True)
class Text:
    """What both sides agree on."""

    content: bytes

    def with_crlf(self) -> "Text":
        """The same with CRLF at the end of each line."""
        return Text(self.content.replace(b"\n", b"\r\n"))


@dataclass(frozen=True, kw_only=True)
class Hunk:
    """Lines that the owner and the template changed, each in his way."""

    owner: bytes
    template: bytes | None  # None: the template no longer has the file
    line: int  # of the owner's file, at which the hunk begins

    def with_crlf(self) -> "Hunk":
        """The same with CRLF at the end of each line."""
        template = None if self.template is None else self.template.replace(b"\n", b"\r\n")
        return Hunk(owner=self.owner.replace(b"\n", b"\r\n"), template=template, line=self.line)


def parse(content: bytes, size: int) -> tuple[Text | Hunk, ...]:
    """Split what git wrote with conflict markers of `size` characters."""
    pattern = rb"(?ms)^<{%d}[^\n]*\n(.*?)^={%d}\n(.*?)^>{%d}[^\n]*(?:\n|\Z)" % (size, size, size)
    parts: list[Text | Hunk] = []
    position, line = 0, 1
    for found in re.finditer(pattern, content):
        if found.start() > position:
            before = content[position : found.start()]
            parts.append(Text(before))
            line += before.count(b"\n")
        parts.append(Hunk(owner=found[1], template=found[2], line=line))
        line += found[1].count(b"\n")
        position = found.end()
    if position < len(content):
        parts.append(Text(content[position:]))
    return tuple(parts)


def with_markers(parts: Iterable[Text | Hunk]) -> bytes:
    """The file with both sides of each hunk between markers; what the template no longer has stays as it is."""
    written = []
    for part in parts:
        if isinstance(part, Text):
            written.append(part.content)
        elif part.template is None:
            written.append(part.owner)
        else:
            end = b"\r\n" if b"\r\n" in part.owner else b"\n"
            owner, template = _ended(part.owner, end), _ended(part.template, end)
            written += [b"<<<<<<< owner", end, owner, b"=======", end, template, b">>>>>>> template", end]
    return b"".join(written)


def has_markers(content: bytes) -> bool:
    """Whether both kinds of markers that `with_markers` writes are still there."""
    return re.search(rb"(?m)^<<<<<<< owner\r?$|^>>>>>>> template\r?$", content) is not None


def resolved(parts: Iterable[Text | Hunk], side: str) -> bytes | None:
    """The file with one side of each hunk; None where that is no file."""
    chosen: list[bytes] = []
    for part in parts:
        if isinstance(part, Text):
            chosen.append(part.content)
        elif side == OWNER:
            chosen.append(part.owner)
        elif part.template is None:
            return None
        else:
            chosen.append(part.template)
    return b"".join(chosen)


def rejected(path: str, parts: Iterable[Text | Hunk]) -> bytes:
    """The owner's side of each hunk as a patch of the file that has the template's."""
    template, owner = resolved(parts, TEMPLATE), resolved(parts, OWNER)
    before = (template or b"").decode(errors="surrogateescape").splitlines(keepends=True)
    after = (owner or b"").decode(errors="surrogateescape").splitlines(keepends=True)
    lines = []
    for line in difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"):
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines).encode(errors="surrogateescape")


def _ended(text: bytes, end: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + end
