"""Edits of `ops/cutile/__init__.py`: the imports and the `__all__` entry that load and export an operator."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tilewright.codemod import exports
from tilewright.codemod import imports
from tilewright.codemod.bindings import bindings
from tilewright.codemod.imports import Import
from tilewright.codemod.imports import ImportLine
from tilewright.codemod.source import Edit
from tilewright.codemod.source import Source
from tilewright.errors import RegistrationError

_AVAILABLE = re.compile(r"([\w.]+\.)?is_backend_available\(\s*(\"cutile\"|'cutile')\s*\)")
_SHAPE = 'expected one `if is_backend_available("cutile"):` block with `from . import ...` lines and an `__all__` list'


@dataclass(frozen=True)
class _Block:
    imports: list[ImportLine]
    names: cst.List


def lines_of(op: str, placement: str) -> tuple[Import, Import]:
    """The two imports of an operator: its module, which registers it, and its function."""
    if placement == "experimental":
        return Import(".experimental", op), Import(f".experimental.{op}", op)
    return Import(".", op), Import(f".{op}", op)


def additions(source: Source, op: str, placement: str) -> list[Edit]:
    """Import and export the operator, as far as that is not so yet."""
    block = _block(source, op)
    lines = lines_of(op, placement)
    _refuse_other_bindings(source, block, op, lines)
    present = {line.what for line in block.imports}
    edits = [imports.added(source, block.imports, line) for line in lines if line not in present]
    if exports.entry(block.names, op) is None:
        edits.append(exports.added(source, block.names, op))
    return edits


def removals(source: Source, op: str) -> list[Edit]:
    """Take out whatever `additions` put in, for either placement."""
    block = _block(source, op)
    lines = (*lines_of(op, "main"), *lines_of(op, "experimental"))
    _refuse_other_bindings(source, block, op, lines)
    edits = [imports.removed(source, line) for line in block.imports if line.what in lines]
    index = exports.entry(block.names, op)
    if index is not None:
        edits.append(exports.removed(source, block.names, index))
    return edits


def _block(source: Source, op: str) -> _Block:
    found = []
    for statement in source.module.body:
        if not isinstance(statement, cst.If) or not isinstance(statement.body, cst.IndentedBlock):
            continue
        if _AVAILABLE.fullmatch(source.module.code_for_node(statement.test)):
            siblings = [line for line in imports.import_lines(statement.body.body) if line.what.module.startswith(".")]
            found += [_Block(siblings, names) for names in _all_lists(statement.body)]
    if len(found) == 1 and found[0].imports:
        return found[0]
    raise RegistrationError(
        f"{source.path} has a shape that tilewright does not know",
        expected=_SHAPE,
        hint=f"register {op} by hand: `from . import {op}`, `from .{op} import {op}` and the entry in `__all__`",
    )


def _all_lists(block: cst.IndentedBlock) -> list[cst.List]:
    lists = []
    for statement in block.body:
        match statement:
            case cst.SimpleStatementLine(
                body=[
                    cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value="__all__"))], value=cst.List() as names)
                    | cst.AnnAssign(target=cst.Name(value="__all__"), value=cst.List() as names)
                ]
            ):
                lists.append(names)
    return lists


def _refuse_other_bindings(source: Source, block: _Block, op: str, lines: Sequence[Import]) -> None:
    ours = {line.node.body[0] for line in block.imports if line.plain and line.what in lines}
    for node in bindings(source.module).get(op, []):
        if node not in ours:
            raise RegistrationError(
                f"{source.path} binds {op} already: `{source.line(node)}`",
                expected=f"expected no {op}, or only `{lines[0].code}` and `{lines[1].code}`",
                hint="choose another name, or take that line out by hand if it is a leftover",
            )
