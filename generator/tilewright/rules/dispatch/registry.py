"""What is in the registry: every key has one stub and at most one implementation for a backend, all of them loaded."""

import ast
import difflib
from collections.abc import Iterator

from tilewright.rules.declarations import Declaration
from tilewright.rules.dispatch.snippets import CUTILE
from tilewright.rules.dispatch.snippets import SIGNATURE
from tilewright.rules.dispatch.snippets import package
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.project import Project
from tilewright.rules.rule import Rule

_IMPLEMENTATION = CUTILE.format(implementation=SIGNATURE, result="x * factor")


class NoStub(Rule):
    """An implementation is registered under a key that has no stub."""

    code = "TW110"
    severity = Severity.ERROR
    why = "Nobody can call it: the function that users call looks up another key."
    advice = "Write the key of the stub, or add the stub: @dispatch with this key."
    VALID = (package(),)
    INVALID = (package(changed={"cutile.py": _IMPLEMENTATION.replace('"scale"', '"scales"')}),)

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Keys of implementations in a package that has stubs, and none of these."""
        declared = {each.key for each in project.declarations if each.backend is None}
        for each in project.declarations:
            if each.backend is None or each.key in declared or not project.is_checked(each.module):
                continue
            keys = project.keys_around(each.module, "dispatch")
            orphans = keys - project.keys_around(each.module, "register_impl")
            near = difflib.get_close_matches(each.key, orphans, n=1, cutoff=0.8)
            if near:
                message = f"no stub has the key {each.key!r}; write {near[0]!r}"
                yield self.finding(each.module, each.node, message)
            elif keys:  # where no stub of the package is known, neither is whether this one is missing
                message = f"no stub has the key {each.key!r}: nothing calls this implementation; add a stub"
                yield self.finding(each.module, each.node, message, severity=Severity.WARNING)


class NoImplementation(Rule):
    """A stub has no implementation."""

    code = "TW111"
    severity = Severity.WARNING
    why = "Calling the operator raises NotImplementedError on every backend."
    advice = "Register an implementation under the key of the stub."
    VALID = (package(),)
    INVALID = (package(changed={"cutile.py": "", "__init__.py": "from .interface import scale\n"}),)

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Stubs whose key no implementation has, and whose body has none of its own."""
        # Those of the package only: tests and benchmarks register references of their own.
        implemented = {(each.key, _package(project, each)) for each in project.declarations if each.backend is not None}
        for each in project.declarations:
            if each.backend is not None or not project.is_checked(each.module):
                continue
            if (each.key, _package(project, each)) in implemented:
                continue
            if each.function is not None and _only_raises(each.function):
                yield self.finding(
                    each.module, each.node, f"nothing is registered under {each.key!r}: register an implementation"
                )


class Duplicate(Rule):
    """A key has two stubs, or two implementations for one backend."""

    code = "TW112"
    severity = Severity.ERROR
    why = "The one that is imported last replaces the other in silence."
    advice = "Remove one, or give it a key or backend of its own."
    VALID = (package(),)
    INVALID = (
        package(changed={"cutile.py": _IMPLEMENTATION + _IMPLEMENTATION}),
        package(
            changed={
                "other.py": _IMPLEMENTATION,
                "__init__.py": "from .interface import scale\nfrom . import cutile\nfrom . import other\n",
            }
        ),
    )

    def check_project(self, project: Project) -> Iterator[Finding]:
        """The second of two that nothing decides between."""
        seen: dict[tuple[str, str | None, str], Declaration] = {}
        for each in project.declarations:
            if each.module.is_test or each.module.is_benchmark:
                continue  # they register references of their own, and are not loaded together
            first = seen.setdefault((each.key, each.backend, _package(project, each)), each)
            if first is each or first.conditional or each.conditional or not project.is_checked(each.module):
                continue
            what = f"backend {each.backend!r} of {each.key!r}" if each.backend else f"the stub {each.key!r}"
            where = f"{first.module.path.name}:{first.node.lineno}"
            yield self.finding(each.module, each.node, f"{what} is declared at {where} too: remove one")


class NeverImported(Rule):
    """A module registers an implementation and is never imported."""

    code = "TW113"
    severity = Severity.ERROR
    why = "The backend is missing at run time, or another one answers in its place, and nothing says so."
    advice = "Import the module where the package registers its backends: from . import my_op."
    VALID = (package(),)
    INVALID = (package(changed={"__init__.py": 'from .interface import scale\n\n__all__ = ["scale"]\n'}),)

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Modules with implementations that the package of their stub does not load."""
        stubs = {each.key: each for each in project.declarations if each.backend is None}
        for each in project.declarations:
            stub = stubs.get(each.key)
            if each.backend is None or stub is None or not project.is_checked(each.module):
                continue
            home, module = _home(project, stub), project.name(each.module)
            if _package(project, stub) == _package(project, each) and home and not project.loads(home, module):
                yield self.finding(
                    each.module, each.node, f"importing {home} does not import {module}: import it there"
                )


class BusyStub(Rule):
    """A stub does more than raise NotImplementedError."""

    code = "TW115"
    severity = Severity.WARNING
    why = "Its body runs only where no backend is found, so a missing one is hidden."
    advice = "Let the body be the docstring and `raise NotImplementedError`."
    VALID = (package(),)
    INVALID = (
        package(
            changed={
                "interface.py": """
                from .backend import dispatch


                @dispatch("scale")
                def scale(x, factor=1.0, **kwargs):
                    return x * factor
                """
            }
        ),
    )

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Bodies with other statements."""
        for each in project.declarations:
            if each.backend is not None or each.function is None or not project.is_checked(each.module):
                continue
            if not _only_raises(each.function):
                message = f"the stub {each.key!r} does more than raise NotImplementedError: leave only that"
                yield self.finding(each.module, each.function, message)


def _package(project: Project, declaration: Declaration) -> str:
    """The outermost package of what declares."""
    return project.name(declaration.module).partition(".")[0]


def _home(project: Project, stub: Declaration) -> str:
    # The package from which the operator is imported; an operator folder is part of the one around it.
    package = project.name(stub.module).rpartition(".")[0]
    return package.removesuffix(f".{stub.function.name}") if stub.function else package


def _only_raises(function: ast.FunctionDef) -> bool:
    match function.body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest] | rest:
            return len(rest) == 1 and isinstance(rest[0], ast.Raise)
    return False
