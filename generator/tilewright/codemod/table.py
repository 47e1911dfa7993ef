"""Read and rewrite the table of tiles and compiler hints on top of a kernel file, for one architecture.

Such a table is a dictionary in the module. Its entries are calls of a dataclass of the file, as in
`CONFIGS[2][9] = (_Config((128, 256, 64)), ...)`, found by the bytes of an element and the first major compute
capability that they are for; or dictionaries or tuples whose values may differ between architectures by `ct.ByTarget`,
as in `HINTS[8192] = {"occupancy": 4}`. A table of the second kind may be a single entry, `HINTS = {"occupancy": 4}`.
"""

import ast
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any

from tilewright.errors import UsageError

Values = dict[str, Any]
_SIGNATURE = re.compile(r"# sm_(\d+): ")
_BY_TARGET = re.compile(r"(^|\.)ByTarget$")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Which table, and which part of it: that for elements of so many bytes, on an architecture such as sm_90."""

    name: str
    arch: str
    itemsize: int | None = None  # None: the table is one of hints, for elements of any size

    @property
    def major(self) -> int:
        """Major compute capability of the architecture."""
        return int(self.arch.removeprefix("sm_")[:-1])


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry: how to name it, and the value of each field on this architecture; fields of a tuple are numbered."""

    label: str
    values: Values


class Table:
    """The part of a table that one architecture uses, in the text of a kernel file."""

    def __init__(self, text: str, place: Place, *, path: PurePosixPath) -> None:
        self.text = text
        self._bytes = text.encode()
        self._place = place
        self._path = path
        self._module = ast.parse(text)
        self._lines = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._statement = self._assignment()
        self._generations = self._find_generations()
        self._part, self._exact = self._find_part()
        self._records = self._find_records(self._part)

    @property
    def entries(self) -> list[Entry]:
        """All entries, in the order of the file."""
        return [Entry(label=label, values=self._read(record)) for label, record in self._records]

    @property
    def relatives(self) -> list[Values]:
        """Values of every entry for elements of this size: first those of `entries`, then of nearer architectures."""
        majors = sorted(self._generations, key=lambda major: (abs(major - self._place.major), major))
        parts = [self._part, *(self._generations[major] for major in majors)]
        found = [self._read(record) for part in parts for _, record in self._find_records(part)]
        return [values for place, values in enumerate(found) if values not in found[:place]]

    def replaced(self, index: int, values: Mapping[str, Any]) -> str:
        """The text with these fields of one entry changed, on this architecture only."""
        _, record = self._records[index]
        start, end = self._span(record)
        written = self._write(record, values)
        if self._exact:
            return self._spliced(start, end, written)
        begin, stop = self._span(self._part)
        return self._copied(stop, (self._bytes[begin:start] + written.encode() + self._bytes[end:stop]).decode())

    def _copied(self, end: int, part: str) -> str:
        """The text with a part for this architecture behind that of another one, which must stay."""
        return self._spliced(end, end, f", {self._place.major}: {part}")

    def removed(self, index: int) -> str | None:
        """The text without one entry, so that another serves instead; None where each has a key of its own."""
        if not isinstance(self._part, ast.Tuple) or len(self._records) == 1:
            return None
        others = [self._source(record) for place, (_, record) in enumerate(self._records) if place != index]
        start, end = self._span(self._part)
        part = f"({', '.join(others)},)"
        return self._spliced(start, end, part) if self._exact else self._copied(end, part)

    def signed(self, note: str) -> str:
        """The text with a comment above the table that says where the values of this architecture come from."""
        mark = f"# {self._place.arch}: "
        lines = self._bytes.decode().splitlines(keepends=True)
        first = self._statement.lineno - 1
        signatures = self._signatures(lines)
        kept = [line for line in lines[first - signatures : first] if not line.startswith(mark)]
        above = sorted([*kept, f"{mark}{note}\n"], key=_number_of)
        return "".join([*lines[: first - signatures], *above, *lines[first:]])

    def without(self) -> str:
        """The text without the table and what is said of it: the same whatever is found."""
        lines = self._bytes.decode().splitlines(keepends=True)
        first, end = self._statement.lineno - 1, self._statement.end_lineno
        return "".join([*lines[: first - self._signatures(lines)], *lines[end:]])

    def _signatures(self, lines: list[str]) -> int:
        """How many lines above the table say where values come from."""
        above = takewhile(_SIGNATURE.match, reversed(lines[: self._statement.lineno - 1]))
        return len(list(above))

    def _assignment(self) -> ast.Assign:
        for node in self._module.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=self._place.name)], value=ast.Dict()):
                    return node
        raise self._unknown(f"has no table {self._place.name}")

    def _find_generations(self) -> dict[int, ast.expr]:
        """What the table has for elements of this size, by major compute capability; nothing if it is one of hints."""
        assert isinstance(self._statement.value, ast.Dict)
        if self._place.itemsize is None:
            return {}
        generations = _items(self._statement.value).get(self._place.itemsize)
        if not isinstance(generations, ast.Dict):
            raise self._unknown(f"has no {self._place.name}[{self._place.itemsize}]")
        return {major: part for major, part in _items(generations).items() if isinstance(major, int)}

    def _find_part(self) -> tuple[ast.expr, bool]:
        """What holds the entries, and whether it is for this architecture alone or its changes must be kept apart."""
        if self._place.itemsize is None:
            return self._statement.value, True
        known = [major for major in self._generations if major <= self._place.major]
        if not known:
            first = min(self._generations, default=None)
            raise UsageError(
                f"{self._path} has nothing for {self._place.arch} in {self._place.name}[{self._place.itemsize}]",
                expected="" if first is None else f"expected an architecture from sm_{first}0 on",
                hint="tune it for one that the operator supports: --arch, or another GPU",
            )
        return self._generations[max(known)], max(known) == self._place.major

    def _find_records(self, part: ast.expr) -> list[tuple[str, ast.expr]]:
        name = self._place.name
        if isinstance(part, ast.Tuple):
            prefix = f"{name}[{self._place.itemsize}][{self._place.major}]"
            found = [(f"{prefix}[{index}]", node) for index, node in enumerate(part.elts)]
        elif isinstance(part, ast.Dict):
            found = [(f"{name}[{key!r}]", node) for key, node in _items(part).items()]
            if not any(isinstance(node, ast.Dict | ast.Tuple) for _, node in found):
                return [(name, part)]
        else:
            raise self._unknown(f"has a {name} whose entries are in no tuple or dictionary")
        for label, node in found:
            if not isinstance(node, ast.Call | ast.Dict | ast.Tuple):
                raise self._unknown(f"has an entry {label} that is no call, dictionary or tuple")
        return found

    def _read(self, record: ast.expr) -> Values:
        if isinstance(record, ast.Dict | ast.Tuple):
            return self._constants(_items(record))
        assert isinstance(record, ast.Call)
        fields = self._fields(record)
        return self._constants(fields | _bound(record, fields))

    def _write(self, record: ast.expr, values: Mapping[str, Any]) -> str:
        if isinstance(record, ast.Dict | ast.Tuple):
            nodes = {str(name): node for name, node in _items(record).items()}
            written = {name: self._source(node) for name, node in nodes.items()}
            for name, value in values.items():
                written[name] = self._for_target(nodes.get(name), value)
            if isinstance(record, ast.Tuple):
                return f"({', '.join(written.values())})"
            return "{" + ", ".join(f'"{name}": {text}' for name, text in written.items()) + "}"
        assert isinstance(record, ast.Call)
        fields = self._fields(record)
        given = {name: self._source(node) for name, node in _bound(record, fields).items()}
        positional = list(fields)[: len(record.args)]
        for name, value in values.items():
            given[name] = repr(value)
        defaults = {name: self._source(node) for name, node in fields.items() if node}
        keywords = [n for n in fields if n in given and n not in positional and given[n] != defaults.get(n)]
        arguments = [given[name] for name in positional] + [f"{name}={given[name]}" for name in keywords]
        return f"{self._source(record.func)}({', '.join(arguments)})"

    def _fields(self, call: ast.Call) -> dict[str, ast.expr | None]:
        """Fields of the dataclass that is called, with their defaults."""
        name = self._source(call.func)
        for node in self._module.body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return {
                    each.target.id: each.value
                    for each in node.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                }
        raise self._unknown(f"calls {name} in {self._place.name}, which is no class of the file")

    def _constants(self, nodes: Mapping[Any, ast.expr | None]) -> Values:
        """Those of the values that are constants on this architecture."""
        found: Values = {}
        for name, node in nodes.items():
            if isinstance(node, ast.Call) and _BY_TARGET.search(self._source(node.func)):
                targets = self._targets(node)
                found[str(name)] = targets.get(self._place.arch, targets.get("default"))
            elif node is not None:
                with suppress(ValueError):
                    found[str(name)] = ast.literal_eval(node)
        return found

    def _targets(self, call: ast.Call) -> Values:
        return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}

    def _for_target(self, node: ast.expr | None, value: Any) -> str:
        """The value for this architecture beside those that the node has for the others."""
        if isinstance(node, ast.Call):
            function, targets = self._source(node.func), self._targets(node)
        else:
            function, targets = "ct.ByTarget", {} if node is None else {"default": ast.literal_eval(node)}
        targets[self._place.arch] = value
        default = targets.pop("default", None)
        targets = {arch: found for arch, found in sorted(targets.items(), key=_by_number) if found != default}
        if not targets:
            return repr(default)
        found = targets if default is None else {**targets, "default": default}
        return f"{function}({', '.join(f'{name}={each!r}' for name, each in found.items())})"

    def _source(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._bytes[start:end].decode()

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno
        assert node.end_col_offset is not None
        start, end = node.lineno, node.end_lineno
        return self._lines[start - 1] + node.col_offset, self._lines[end - 1] + node.end_col_offset

    def _spliced(self, start: int, end: int, text: str) -> str:
        return (self._bytes[:start] + text.encode() + self._bytes[end:]).decode()

    def _unknown(self, what: str) -> UsageError:
        return UsageError(
            f"{self._path} {what}",
            expected="expected a table as the template of its family has it",
            hint="bring the operator up to date: tilewright update",
        )


def _items(node: ast.Dict | ast.Tuple) -> dict[Any, ast.expr]:
    """Values by their keys, in a tuple by their places."""
    if isinstance(node, ast.Tuple):
        return dict(enumerate(node.elts))
    pairs = zip(node.keys, node.values, strict=True)
    return {key.value: value for key, value in pairs if isinstance(key, ast.Constant)}


def _bound(call: ast.Call, fields: Mapping[str, object]) -> dict[str, ast.expr]:
    """Arguments of the call by the names of the fields."""
    keywords = {str(keyword.arg): keyword.value for keyword in call.keywords}
    return dict(zip(fields, call.args, strict=False)) | keywords


def _number_of(signature: str) -> int:
    match = _SIGNATURE.match(signature)
    assert match
    return int(match[1])


def _by_number(item: tuple[str, Any]) -> int:
    return int(item[0].removeprefix("sm_"))
