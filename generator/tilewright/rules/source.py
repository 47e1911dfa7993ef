"""A parsed file, with what rules ask of it computed once."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from tilewright.rules.bindings import bindings
from tilewright.rules.comments import Comment
from tilewright.rules.comments import comments
from tilewright.rules.declarations import Declaration
from tilewright.rules.declarations import find_declarations
from tilewright.rules.finding import Edit
from tilewright.rules.kernels import Kernel
from tilewright.rules.kernels import find_kernels
from tilewright.rules.launches import Launch
from tilewright.rules.launches import find_launches
from tilewright.rules.names import Names

Node = TypeVar("Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Span:
    """A range of the text; lines and columns count from 1, in characters, the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Module:
    """One file that could be parsed; `path` is as given, and need not exist."""

    def __init__(self, path: Path, text: str) -> None:
        """Raises SyntaxError or ValueError (a null byte) where the text is no Python."""
        self.path = path
        self.text = text
        self.tree = ast.parse(text, filename=str(path))

    @cached_property
    def lines(self) -> list[str]:
        """Lines without their ends, split where Python splits them."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    @cached_property
    def names(self) -> Names:
        """What names mean here."""
        return Names(self.tree)

    @cached_property
    def comments(self) -> list[Comment]:
        """All comments, in order."""
        return comments(self.text)

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """Functions decorated with `ct.kernel`, in order."""
        return find_kernels(self)

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """Every `ct.launch` and autotuning search, in order."""
        return find_launches(self)

    @cached_property
    def declarations(self) -> tuple[Declaration, ...]:
        """Stubs and implementations that importing the module declares, in order."""
        return find_declarations(self)

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Functions at module level (also below `if` and `try`), by name; of equal names the last."""
        return {node.name: node for node in self.nodes(ast.FunctionDef) if self.function_of(node) is None}

    @property
    def is_test(self) -> bool:
        """Whether pytest collects the file."""
        return self.path.name.startswith("test_") or self.path.stem.endswith("_test")

    @property
    def is_benchmark(self) -> bool:
        """Whether the file is a benchmark by name."""
        return self.path.name.startswith("bench_")

    def nodes(self, kind: type[Node]) -> list[Node]:
        """All nodes of exactly this type, in the order of `ast.walk`."""
        return self._by_type.get(kind, [])  # type: ignore[return-value]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node directly around, or None for the module."""
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around, innermost first."""
        while (node := self._parents.get(node)) is not None:  # type: ignore[assignment]
            yield node

    def function_of(self, node: ast.AST) -> Function | None:
        """The innermost function around a node, not the node itself; a lambda is no function here."""
        return next((each for each in self.ancestors(node) if isinstance(each, Function)), None)

    def statement_of(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement around a node, or the node itself."""
        if isinstance(node, ast.stmt):
            return node
        return next((each for each in self.ancestors(node) if isinstance(each, ast.stmt)), None)

    def function_named(self, name: str, at: ast.AST) -> Function | None:
        """The function of a name in the innermost function around `at` that defines one, or at module level."""
        around = [each for each in self.ancestors(at) if isinstance(each, Function)]
        nested = [each for each in self._nested.get(name, []) if self.function_of(each) in around]
        return min(nested, key=lambda each: around.index(self.function_of(each)), default=self.functions.get(name))  # type: ignore[arg-type]

    def bindings(self, scope: ast.AST) -> dict[str, list[ast.expr | None]]:
        """What a function, or the module, binds each of its names to; None for what is no plain assignment."""
        if scope not in self._bindings:
            self._bindings[scope] = bindings(scope)
        return self._bindings[scope]

    def span(self, node: ast.AST) -> Span:
        """Where a node is; a function or class is its name, so that a finding does not mark the whole body."""
        if isinstance(node, ast.Module):
            return Span(1, 1, 1, 1)
        if isinstance(node, Function | ast.ClassDef):
            column = self.lines[node.lineno - 1].find(node.name, node.col_offset) + 1
            return Span(node.lineno, column, node.lineno, column + len(node.name))
        return self._extent(node)

    def source(self, node: ast.AST) -> str:
        """The text of a node as it is written."""
        extent = self._extent(node)
        lines = self.lines[extent.line - 1 : extent.end_line]
        lines[-1] = lines[-1][: extent.end_column - 1]
        lines[0] = lines[0][extent.column - 1 :]
        return "\n".join(lines)

    def replacement(self, node: ast.AST, text: str) -> Edit:
        """An edit that replaces an expression or statement."""
        span = self.span(node)
        return Edit(line=span.line, column=span.column, end_line=span.end_line, end_column=span.end_column, text=text)

    def insertion(self, line: int, column: int, text: str) -> Edit:
        """An edit that inserts text before a character (line and column from 1)."""
        return Edit(line=line, column=column, end_line=line, end_column=column, text=text)

    def added_argument(self, call: ast.Call, text: str) -> Edit:
        """An edit that appends an argument such as `axis=1` to a call."""
        last = max([*call.args, *(keyword.value for keyword in call.keywords)], key=_end, default=None)
        if last is None:
            span = self.span(call)
            return self.insertion(span.end_line, span.end_column - 1, text)
        span = self.span(last)
        line, column = span.end_line, span.end_column
        while self.lines[line - 1][column - 1 : column] == ")" and self._inside(call, line, column):
            column += 1  # the last argument is in parentheses of its own
        return self.insertion(line, column, f", {text}")

    def _inside(self, call: ast.Call, line: int, column: int) -> bool:
        span = self.span(call)
        return (line, column) < (span.end_line, span.end_column - 1)

    def _extent(self, node: ast.AST) -> Span:
        line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        start, end = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
        return Span(line, self._column(line, start), end_line, self._column(end_line, end))

    def _column(self, line: int, offset: int) -> int:
        """`ast` counts columns in UTF-8 bytes."""
        text = self.lines[line - 1]
        return (offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))) + 1

    @cached_property
    def _nested(self) -> dict[str, list[ast.FunctionDef]]:
        found: dict[str, list[ast.FunctionDef]] = {}
        for node in self.nodes(ast.FunctionDef):
            if self.function_of(node) is not None:
                found.setdefault(node.name, []).append(node)
        return found

    @cached_property
    def _bindings(self) -> dict[ast.AST, dict[str, list[ast.expr | None]]]:
        return {}

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return {
            child: node for nodes in self._by_type.values() for node in nodes for child in ast.iter_child_nodes(node)
        }

    @cached_property
    def _by_type(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: dict[type[ast.AST], list[ast.AST]] = {}
        for node in ast.walk(self.tree):
            found.setdefault(type(node), []).append(node)
        return found


def _end(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
