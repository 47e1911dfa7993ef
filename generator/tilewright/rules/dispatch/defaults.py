"""The dispatcher fills in no defaults: those of the implementation count, whatever the stub documents."""

import ast
from collections.abc import Iterator

from tilewright.rules.dispatch.pairs import pairs
from tilewright.rules.dispatch.snippets import package
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.project import Project
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule


class OtherDefault(Rule):
    """Stub and implementation have different defaults."""

    code = "TW104"
    severity = Severity.WARNING
    why = "The default of the implementation is what runs, so the documentation of the stub is wrong."
    advice = "Use one default; None on one side is taken as `chosen by the backend` and not reported."
    VALID = (
        package(stub="x, factor=1.0", implementation="x, factor=1"),
        package(stub="x, factor=None", implementation="x, factor=2.0"),
    )
    INVALID = (package(stub="x, factor=1.0", implementation="x, factor=2.0"),)
    proof = Proof.NUMBERS

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Two constants that differ."""
        for pair in pairs(project):
            for each in pair.accepted.parameters:
                promised = pair.promised.names.get(each.name)
                if promised is None:
                    continue
                match promised.default, each.default:
                    case ast.expr() as stub, ast.expr() as own if _value(stub) != _value(own):
                        if None in (_value(stub), _value(own)):
                            continue
                        message = (
                            f"{each.name} defaults to {ast.unparse(own)} here and to {ast.unparse(stub)} "
                            f"in the stub {pair.key}: use one default"
                        )
                        yield self.finding(pair.implementation.module, own, message)


class RequiredHere(Rule):
    """The implementation requires what callers of the stub may leave out."""

    code = "TW105"
    severity = Severity.ERROR
    why = "A call that the stub allows is a TypeError."
    advice = "Give the parameter the default of the stub."
    VALID = (package(stub="x, factor=1.0", implementation="x, factor=1.0, config=None"),)
    INVALID = (
        package(stub="x, factor=1.0", implementation="x, factor"),
        package(stub="x, factor", implementation="x, factor, stream"),
    )

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Parameters without a default that the stub has with one, or has not at all."""
        for pair in pairs(project):
            for index, each in enumerate(pair.accepted.parameters):
                if each.default is not None:
                    continue
                promised = pair.promised.names.get(each.name)
                if promised is not None and promised.default is not None:
                    what = f"has the default {ast.unparse(promised.default)} in the stub {pair.key}: repeat it"
                elif promised is None and (each.position is None or index >= len(pair.promised.positional)):
                    what = f"is required here, and the stub {pair.key} does not have it: give it a default"
                else:
                    continue
                yield self.finding(pair.implementation.module, each.node, f"{each.name} {what}")


def _value(node: ast.expr) -> object:
    """A constant, or the text of any other expression; None for None."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)
