"""What a rule is: a code, a title, why it matters, what to do, examples that are its tests, and a check."""

import ast
from abc import ABC
from collections.abc import Iterator
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity

if TYPE_CHECKING:
    from tilewright.rules.project import Project
    from tilewright.rules.source import Module

Snippet = str | Mapping[str, str]  # the source of one file, or of several by path


class Proof(StrEnum):
    """How one can tell that the invalid snippets are wrong."""

    COMPILER = "compiler"  # it refuses them
    NUMBERS = "numbers"  # they compute something else than they should
    STYLE = "style"  # they work, and cost time, a surprise or a reader


class Rule(ABC):
    """One rule; the first line of a subclass's docstring is its title."""

    code: ClassVar[str]
    severity: ClassVar[Severity]
    why: ClassVar[str]
    advice: ClassVar[str]
    VALID: ClassVar[tuple[Snippet, ...]]
    INVALID: ClassVar[tuple[Snippet, ...]]
    proof: ClassVar[Proof] = Proof.STYLE
    snippet_path: ClassVar[str] = "operator.py"  # of the snippets that are one file

    @property
    def title(self) -> str:
        """One line that says what is wrong."""
        return (type(self).__doc__ or "").splitlines()[0].rstrip(".")

    def check(self, module: "Module") -> Iterator[Finding]:  # noqa: ARG002
        """What this rule finds in one file."""
        yield from ()

    def check_project(self, project: "Project") -> Iterator[Finding]:  # noqa: ARG002
        """What this rule finds by looking at several files together."""
        yield from ()

    def finding(
        self,
        module: "Module",
        node: ast.AST,
        message: str,
        *,
        fix: Fix | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """A finding of this rule at `node`; the message names the variable and the value."""
        span = module.span(node)
        return Finding(
            code=self.code,
            message=message,
            path=module.path,
            line=span.line,
            column=span.column,
            end_line=span.end_line,
            end_column=span.end_column,
            severity=severity or self.severity,
            help=self.advice,
            fix=fix,
        )
