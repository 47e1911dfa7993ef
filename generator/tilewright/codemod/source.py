"""One Python file as LibCST reads it, and edits that leave every other byte of it alone."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from pathlib import PurePosixPath

import libcst as cst
from libcst.metadata import MetadataWrapper
from libcst.metadata import PositionProvider

from tilewright.errors import RegistrationError
from tilewright.model.change import FileChange

_NEWLINE = re.compile(r"\r\n?|\n")
_CONFLICT = re.compile(r"^(<{7}|>{7})( |$)", re.MULTILINE)
_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
_RESTORE = "restore the file, for example with `git restore`, and try again"


@dataclass(frozen=True)
class Edit:
    """Replace the characters from `start` to `end` with `text`."""

    start: int
    end: int
    text: str = ""


@dataclass(frozen=True)
class Source:
    """A file that was read and understood; offsets count characters of `text`."""

    path: PurePosixPath
    before: bytes
    text: str
    module: cst.Module

    @classmethod
    def read(cls, root: Path, path: PurePosixPath) -> "Source":
        """Read the file, or say why it cannot be edited safely."""
        try:
            before = (root / path).read_bytes()
            decoded = before.decode("utf-8")
        except OSError as error:
            raise RegistrationError(
                f"{path} cannot be read: {error.strerror}",
                expected=f"expected a TileGym checkout at {root}",
                hint="run this in the checkout, or choose the standalone layout",
            ) from error
        except UnicodeDecodeError as error:
            raise _unreadable(path, f"is not UTF-8 (byte {error.start})") from error
        if _CONFLICT.search(decoded):
            raise RegistrationError(
                f"{path} has merge-conflict markers",
                expected="expected a file without an unfinished merge",
                hint="resolve the conflict, then try again",
            )
        text = decoded.removeprefix(_BOM)
        try:
            module = cst.parse_module(text)
        except cst.ParserSyntaxError as error:
            raise _unreadable(
                path, f"does not parse (line {error.editor_line}, column {error.editor_column})"
            ) from error
        if module.code != text:
            raise _unreadable(
                path, "has white space that would be lost, such as a form feed or a carriage return on its own"
            )
        return cls(path=path, before=before, text=text, module=module)

    @cached_property
    def _positions(self) -> dict[cst.CSTNode, tuple[int, int]]:
        # LibCST counts one line more where the last one has no line ending.
        lines = [0, *(match.end() for match in _NEWLINE.finditer(self.text)), len(self.text)]
        ranges = MetadataWrapper(self.module, unsafe_skip_copy=True).resolve(PositionProvider)
        return {
            node: (lines[place.start.line - 1] + place.start.column, lines[place.end.line - 1] + place.end.column)
            for node, place in ranges.items()
        }

    @property
    def newline(self) -> str:
        """Line ending that most of the file uses."""
        return self.module.default_newline

    def start(self, node: cst.CSTNode) -> int:
        """Offset of the node's first character, decorators included."""
        if isinstance(node, cst.FunctionDef) and node.decorators:
            node = node.decorators[0]
        return self._positions[node][0]

    def end(self, node: cst.CSTNode) -> int:
        """Offset after the node's last character."""
        return self._positions[node][1]

    def line(self, node: cst.CSTNode) -> str:
        """The line on which the node starts, for messages."""
        start = self._positions[node][0]
        return self.text[self.line_start(start) : self.line_end(start)].strip()

    def line_start(self, offset: int) -> int:
        """Offset of the first character of the line around `offset`."""
        return max(self.text.rfind("\n", 0, offset), self.text.rfind("\r", 0, offset)) + 1

    def line_end(self, offset: int) -> int:
        """Offset of the line ending of the line around `offset`."""
        match = _NEWLINE.search(self.text, offset)
        return match.start() if match else len(self.text)

    def next_line(self, offset: int) -> int:
        """Offset of the first character of the line below `offset`."""
        match = _NEWLINE.search(self.text, offset)
        return match.end() if match else len(self.text)

    def edited(self, edits: Iterable[Edit]) -> FileChange | None:
        """The file after the edits, which must not overlap; None where there are none."""
        pieces, offset = [], 0
        for edit in sorted(edits, key=lambda edit: edit.start):
            pieces += [self.text[offset : edit.start], edit.text]
            offset = edit.end
        if not pieces:
            return None
        after = "".join([*pieces, self.text[offset:]]).encode()
        bom = self.before[: len(self.before) - len(self.text.encode())]
        return FileChange(path=self.path, before=self.before, after=bom + after)


def _unreadable(path: PurePosixPath, what: str) -> RegistrationError:
    return RegistrationError(
        f"{path} {what}",
        expected="expected a Python file that can be read back byte for byte",
        hint=_RESTORE,
    )
