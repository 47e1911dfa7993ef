"""Stubs together with their implementations for cuTile, and the parameters of both."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.rules.declarations import Declaration
from tilewright.rules.project import Project

BACKEND = "cutile"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function."""

    name: str
    node: ast.arg
    default: ast.expr | None
    position: int | None  # None: by keyword only


@dataclass(frozen=True)
class Signature:
    """The parameters of a function."""

    parameters: tuple[Parameter, ...]
    args: bool  # takes *args
    kwargs: ast.arg | None  # takes **kwargs

    @property
    def names(self) -> dict[str, Parameter]:
        """Parameters by name."""
        return {each.name: each for each in self.parameters}

    @property
    def positional(self) -> tuple[Parameter, ...]:
        """Those that can be given by position."""
        return tuple(each for each in self.parameters if each.position is not None)


@dataclass(frozen=True)
class Pair:
    """A stub and one implementation of it; `backend` is no parameter, because `dispatch` takes it."""

    stub: Declaration
    implementation: Declaration
    promised: Signature
    accepted: Signature

    @property
    def key(self) -> str:
        """The name in the registry."""
        return self.stub.key


def pairs(project: Project) -> Iterator[Pair]:
    """Every pair of which the implementation is checked and both are functions that can be read."""
    stubs = {each.key: each for each in project.declarations if each.backend is None and each.function is not None}
    for each in project.declarations:
        stub = stubs.get(each.key)
        if each.backend != BACKEND or each.function is None or stub is None or not project.is_checked(each.module):
            continue
        assert stub.function is not None
        promised = signature(stub.function)
        if not promised.args:  # a stub that takes anything promises nothing
            yield Pair(stub, each, promised, signature(each.function))


def signature(function: ast.FunctionDef) -> Signature:
    """What a function takes."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(positional) - len(arguments.defaults)), *arguments.defaults]
    by_position = [
        Parameter(node.arg, node, default, position)
        for position, (node, default) in enumerate(zip(positional, defaults, strict=True))
    ]
    by_keyword = [
        Parameter(node.arg, node, default, None)
        for node, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    every = tuple(each for each in (*by_position, *by_keyword) if each.name != "backend")
    return Signature(every, arguments.vararg is not None, arguments.kwarg)
