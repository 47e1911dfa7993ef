"""The modules of a package, read and parsed at most once each and never imported."""

import ast
from collections.abc import Iterable
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from pathlib import PurePosixPath


class Package:
    """A package folder such as `src/tilegym`, below the root of a repository."""

    def __init__(self, root: Path, folder: PurePosixPath) -> None:
        self.root = root
        self.folder = folder
        self.name = ".".join(folder.parts).removeprefix("src.")
        self._sources: dict[str, bytes] = {}
        self._trees: dict[str, ast.Module] = {}

    @cached_property
    def modules(self) -> dict[str, PurePosixPath]:
        """Files by the names under which Python imports them."""
        modules = {}
        for file in sorted((self.root / self.folder).rglob("*.py")):
            inside = PurePosixPath(file.relative_to(self.root / self.folder).as_posix())
            parts = inside.parts[:-1] if inside.name == "__init__.py" else inside.with_suffix("").parts
            modules[".".join((self.name, *parts))] = self.folder / inside
        return modules

    def is_package(self, module: str) -> bool:
        """Whether the module is a folder."""
        return self.modules[module].name == "__init__.py"

    def source(self, module: str) -> bytes:
        """Content of the module's file."""
        if module not in self._sources:
            self._sources[module] = (self.root / self.modules[module]).read_bytes()
        return self._sources[module]

    def tree(self, module: str) -> ast.Module:
        """The parsed module."""
        if module not in self._trees:
            self._trees[module] = parse(self.source(module))
        return self._trees[module]


def parse(source: bytes) -> ast.Module:
    """Parse a file; one that does not parse declares and mentions nothing, and its author's linter says why."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])


def executed(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Statements that run on import: those of a module, also below `if` and `try`, but not in functions and classes."""
    for statement in statements:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With | ast.For | ast.ExceptHandler):
            yield from executed(ast.iter_child_nodes(statement))
