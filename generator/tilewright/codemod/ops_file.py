"""Edits of `ops/ops.py`: the dispatch stub of an operator, and the imports that it needs."""

import ast
import builtins
import re
import sys
from collections.abc import Sequence

import libcst as cst

from tilewright.codemod import imports
from tilewright.codemod.bindings import bindings
from tilewright.codemod.imports import Import
from tilewright.codemod.imports import ImportLine
from tilewright.codemod.source import Edit
from tilewright.codemod.source import Source
from tilewright.errors import RegistrationError

_KNOWN = {
    "collections.abc": ("Callable", "Iterable", "Mapping", "Sequence"),
    "typing": ("Any", "List", "Literal", "Optional", "Tuple", "Union"),
}
_MODULES = {name: module for module, names in _KNOWN.items() for name in names}
# Tells an import that we added from one that was there, unused: only the former goes with its last stub.
_MARK = "# for stubs that tilewright added"
_SECTION = re.compile(r"#\s*NN Operations", re.IGNORECASE)
_BANNER = re.compile(r"#\s*[=-]{10,}")
_LINE_ABOVE_AND_TWO_BLANK = re.compile(r"(?:\r\n|\r|\n){0,3}\Z")


def additions(source: Source, op: str, stub: str) -> list[Edit]:
    """Insert the stub and its imports, unless it is there."""
    if _find(source, op):
        return []
    bound = bindings(source.module)
    if op in bound:
        raise RegistrationError(
            f"{source.path} defines {op} already: `{source.line(bound[op][0])}`",
            expected=f'expected no {op}, or a function with `@dispatch("{op}")`',
            hint="choose another name",
        )
    lines = _imports(source)
    missing = sorted(_names(stub) - bound.keys() - {op})
    unknown = ", ".join(name for name in missing if name not in _MODULES or not lines)
    if unknown:
        raise RegistrationError(
            f"{source.path} does not import {unknown}",
            expected=f"expected every name that the stub of {op} uses to be there, as in TileGym",
            hint=f"import {unknown} in that file, then try again",
        )
    return [*_import_additions(source, lines, missing), _stub_addition(source, stub)]


def removals(source: Source, op: str) -> list[Edit]:
    """Take out the stub, and the imports that were added for stubs and that nothing uses any more."""
    node = _find(source, op)
    if node is None:
        return []
    start, end = source.line_start(source.start(node)), source.line_end(source.end(node))
    above = _LINE_ABOVE_AND_TWO_BLANK.search(source.text, 0, start)
    start = above.start() if above else start
    return [Edit(start, end), *_import_removals(source, source.text[:start] + source.text[end:])]


def _find(source: Source, op: str) -> cst.FunctionDef | None:
    for statement in source.module.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value == op:
            for decorator in statement.decorators:
                match decorator.decorator:
                    case cst.Call(func=cst.Name(value="dispatch"), args=[cst.Arg(value=cst.SimpleString() as key), *_]):
                        if key.evaluated_value == op:
                            return statement
    return None


def _names(code: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(code)))
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - parameters - vars(builtins).keys()


def _stub_addition(source: Source, stub: str) -> Edit:
    newline = source.newline
    text = stub.strip().replace("\n", newline)
    place = _end_of_section(source)
    if place is not None:
        return Edit(place, place, f"{newline}{newline}{text}{newline}")
    place = len(source.text.rstrip("\r\n"))
    return Edit(place, place, f"{newline}{newline}{newline}{text}")


def _end_of_section(source: Source) -> int | None:
    # The line after the last function under the banner `NN Operations`, where the next banner follows two blank lines.
    inside = False
    for statement in source.module.body:
        comments = [line.comment.value if line.comment else "" for line in statement.leading_lines]
        if inside and any(map(_BANNER.fullmatch, comments)):
            leading = "".join(map(source.module.code_for_node, statement.leading_lines))
            return source.start(statement) - len(leading) if comments[:2] == ["", ""] and comments[2] else None
        inside = inside or any(map(_SECTION.fullmatch, comments))
    return None


def _imports(source: Source) -> list[ImportLine]:
    lines = imports.import_lines(source.module.body)
    return [line for line in lines if line.what.module != "__future__"]  # its place is above all others


def _is_standard(line: ImportLine) -> bool:
    package = (line.what.module or line.what.name).split(".")[0]
    return package in sys.stdlib_module_names


def _import_additions(source: Source, lines: Sequence[ImportLine], names: Sequence[str]) -> list[Edit]:
    new = sorted((Import(_MODULES[name], name) for name in names), key=lambda line: line.sort_key)
    standard = [line for line in lines if _is_standard(line)]
    if standard or not new:
        return [imports.added(source, standard, line, f"  {_MARK}") for line in new]
    place = source.start(lines[0].node)  # a section of its own
    section = "".join(f"{line.code}  {_MARK}{source.newline}" for line in new)
    return [Edit(place, place, section + source.newline)]


def _import_removals(source: Source, remaining: str) -> list[Edit]:
    standard = [line for line in _imports(source) if _is_standard(line)]
    marked = [line for line in standard if line.comment == _MARK]
    used = _names(remaining) if marked else set()
    gone = [line for line in marked if line.what.name not in used]
    edits = [imports.removed(source, line) for line in gone]
    if gone == standard and gone:  # the section goes with the blank line below it
        last = edits.pop()
        edits.append(Edit(last.start, source.next_line(last.end)))
    return edits
