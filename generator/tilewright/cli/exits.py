"""Exit codes, and the error that each one stands for."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer

from tilewright.errors import TilewrightError


class Exit(IntEnum):
    """What a command tells the shell; errors of the package bring their own."""

    FINE = 0
    FINDINGS = 1  # or a mismatch, or changes pending with --check
    USAGE = 2
    MISSING = 3
    NOTHING_RAN = 5
    BUG = 70
    INTERRUPTED = 130


@contextmanager
def errors_as_messages(*, debug: bool) -> Iterator[None]:
    """Turn an error into at most three lines and an exit code; with `debug` show the traceback as well."""
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            import traceback

            traceback.print_exc()
        raise typer.Exit(report(error)) from error


def report(error: BaseException) -> int:
    """Say what happened; returns the exit code."""
    message, code = _explain(error)
    if message:
        print(message, file=sys.stderr)
    return code


def _explain(error: BaseException) -> tuple[str, int]:
    if isinstance(error, TilewrightError):
        return f"error: {error}", error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", Exit.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return "", Exit.FINDINGS
    if isinstance(error, OSError):
        return f"error: {': '.join(map(str, filter(None, [error.strerror, error.filename])))}", Exit.USAGE
    text = " ".join(str(error).split())
    return f"internal error: {type(error).__name__}: {text}\nrun again with --debug and report what it shows", Exit.BUG
