"""Stub and implementation must take the same parameters: the dispatcher hands on what it is given, unchanged."""

import ast
from collections.abc import Iterator

from tilewright.rules.dispatch.pairs import Pair
from tilewright.rules.dispatch.pairs import Parameter
from tilewright.rules.dispatch.pairs import pairs
from tilewright.rules.dispatch.snippets import package
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.project import Project
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule


def _missing(pair: Pair) -> Iterator[tuple[Parameter, Parameter | None]]:
    """Parameters of the stub that the implementation does not name, each with what has its place there."""
    for each in pair.promised.parameters:
        if each.name not in pair.accepted.names:
            position = each.position
            there = pair.accepted.positional
            other = there[position] if position is not None and position < len(there) else None
            yield each, other if other is not None and other.name not in pair.promised.names else None


class SwallowedParameter(Rule):
    """A parameter of the stub disappears in the implementation's **kwargs."""

    code = "TW101"
    severity = Severity.ERROR
    why = "A caller who passes it by keyword gets no error, and numbers that were computed without it."
    advice = "Give the implementation the parameter under the name that it has in the stub, and use it."
    VALID = (package(),)
    INVALID = (
        package(stub="x, factor=1.0, **kwargs", implementation="x, scale=1.0, **kwargs", result="x * scale"),
        package(stub="x, factor=1.0, clamp=None, **kwargs", implementation="x, factor=1.0, **kwargs"),
    )
    proof = Proof.NUMBERS

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Names of the stub that only **kwargs takes."""
        for pair in pairs(project):
            if pair.accepted.kwargs is None:
                continue
            for each, other in _missing(pair):
                if other is not None and other.default is None:
                    continue  # an error at run time, and TW102
                message = f"{each.name} of the stub {pair.key} is swallowed by **{pair.accepted.kwargs.arg} here"
                if other is not None:
                    message += f", and {other.name} has its place and keeps its default"
                yield self.finding(pair.implementation.module, pair.accepted.kwargs, f"{message}: name it {each.name}")


class UnknownParameter(Rule):
    """The implementation does not take a parameter of the stub."""

    code = "TW102"
    severity = Severity.ERROR
    why = "A caller who uses the stub as documented gets a TypeError from inside the dispatcher."
    advice = "Use the names of the stub."
    VALID = (package(stub="x, factor=1.0", implementation="x, factor=1.0"),)
    INVALID = (
        package(stub="x, factor=1.0", implementation="input, factor=1.0"),
        package(stub="x, factor=1.0, clamp=None", implementation="x, factor=1.0"),
    )

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Names that nothing takes."""
        for pair in pairs(project):
            assert pair.implementation.function is not None
            for each, other in _missing(pair):
                required = other is not None and other.default is None
                if pair.accepted.kwargs is not None and not required:
                    continue
                name = f"{each.name} of the stub {pair.key}"
                if other is not None:
                    message = (
                        f"{name} is called {other.name} here: {pair.key}({each.name}=...) is a TypeError; "
                        f"call it {each.name}"
                    )
                elif pair.accepted.args and each.position is not None:
                    continue
                else:
                    message = f"{name} is not taken here, so passing it is a TypeError: take it"
                place = other.node if other is not None else pair.implementation.function
                yield self.finding(pair.implementation.module, place, message)


class OtherOrder(Rule):
    """Stub and implementation have their parameters in another order."""

    code = "TW103"
    severity = Severity.ERROR
    why = "An argument that is passed by position reaches another parameter than the stub says."
    advice = "Put the parameters into the order of the stub; what only one side has goes last, or by keyword only."
    VALID = (package(stub="x, factor=1.0", implementation="x, factor=1.0, *, config=None"),)
    INVALID = (
        package(
            stub="x, factor=1.0, bias=0.0",
            implementation="x, bias=0.0, factor=1.0",
            result="x * factor + bias",
        ),
        package(stub="x, factor=1.0", implementation="x, config=None, factor=1.0"),
    )
    proof = Proof.NUMBERS

    def check_project(self, project: Project) -> Iterator[Finding]:
        """The first place at which a known name stands where the stub has another."""
        for pair in pairs(project):
            for promised, accepted in zip(pair.promised.positional, pair.accepted.positional, strict=False):
                if promised.name == accepted.name:
                    continue
                moved = promised.name in pair.accepted.names or accepted.name in pair.promised.names
                if moved:
                    assert accepted.position is not None
                    yield self.finding(
                        pair.implementation.module,
                        accepted.node,
                        f"position {accepted.position + 1} is {accepted.name} here and {promised.name} in the stub "
                        f"{pair.key}: keep the order of the stub",
                    )
                    break


class OtherKeywords(Rule):
    """Only one of stub and implementation takes **kwargs."""

    code = "TW106"
    severity = Severity.WARNING
    why = "Further keywords that the stub lets through are a TypeError, or misspelt ones are accepted in silence."
    advice = "Let both take **kwargs or neither."
    VALID = (package(), package(stub="x, factor=1.0", implementation="x, factor=1.0"))
    INVALID = (
        package(stub="x, factor=1.0, **kwargs", implementation="x, factor=1.0"),
        package(stub="x, factor=1.0", implementation="x, factor=1.0, **kwargs"),
    )

    def check_project(self, project: Project) -> Iterator[Finding]:
        """**kwargs on one side."""
        for pair in pairs(project):
            module, function = pair.implementation.module, pair.implementation.function
            assert function is not None
            if pair.promised.kwargs is not None and pair.accepted.kwargs is None:
                message = (
                    f"the stub {pair.key} takes **{pair.promised.kwargs.arg}, which is a TypeError here: take it too"
                )
                yield self.finding(module, function, message)
            elif pair.promised.kwargs is None and pair.accepted.kwargs is not None:
                message = (
                    f"**{pair.accepted.kwargs.arg} takes keywords that the stub {pair.key} does not have: "
                    "let both or neither"
                )
                severity = Severity.INFO if _has_options(function, pair.accepted.kwargs.arg) else None
                yield self.finding(module, pair.accepted.kwargs, message, severity=severity)


def _has_options(function: ast.FunctionDef, kwargs: str) -> bool:
    """Whether an implementation looks for options of its own among further keywords."""
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=ast.Name(id=name)) if name == kwargs:
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get" | "pop")) if name == kwargs:
                return True
    return False
