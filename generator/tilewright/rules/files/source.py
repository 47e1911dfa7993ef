"""Files that cannot be checked: no Python, no text, too large."""

from pathlib import Path

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule


class SyntaxErrors(Rule):
    """A file that Python cannot parse."""

    code = "TW001"
    severity = Severity.ERROR
    why = "Nothing else in the file can be checked."
    advice = "Correct the syntax; the version of Python that runs tilewright decides what is valid."
    VALID = ("x = (1,)\n",)
    INVALID = ("x = (1,\n", "def f(:\n    pass\n", "nonlocal x\n", "from __future__ import braces\n", "return 1\n")
    proof = Proof.COMPILER

    def at(self, path: Path, error: Exception) -> Finding:
        """The finding for an error of `ast.parse`."""
        line, column, message = 1, 1, str(error) or type(error).__name__
        if isinstance(error, SyntaxError):
            line, column, message = error.lineno or 1, max(error.offset or 1, 1), error.msg
        return _at(self, path, message, line, column)


class UncheckedFiles(Rule):
    """A file that was named but is not checked."""

    code = "TW005"
    severity = Severity.WARNING
    why = "A file that is skipped silently looks as if it were fine."
    advice = "Name Python source only, or exclude the file in [tool.tilewright]."
    VALID = ("x = 1\n",)
    INVALID = ()  # what is wrong with them cannot be written down as text

    def at(self, path: Path, what: str) -> Finding:
        """The finding for one file."""
        return _at(self, path, what, 1, 1)


def _at(rule: Rule, path: Path, message: str, line: int, column: int) -> Finding:
    return Finding(
        code=rule.code,
        message=message,
        path=path,
        line=line,
        column=column,
        end_line=line,
        end_column=column,
        severity=rule.severity,
        help=rule.advice,
    )
