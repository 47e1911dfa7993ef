"""`tilewright doctor`: what is here, what is missing, and how to mend it."""

import typer

from tilewright.cli.console import Json
from tilewright.cli.exits import Exit

_OPTIONAL = {"driver", "gpu"}  # everything but running kernels works without them


def doctor(json: Json = False) -> None:
    """Examine this machine; exits with 3 if something other than a GPU is missing or does not fit."""
    from tilewright.cli import console
    from tilewright.report import json as documents
    from tilewright.report.text import TextReport
    from tilewright.verify.doctor import State
    from tilewright.verify.doctor import examine

    findings = list(examine())
    if json:
        console.document(documents.doctor(findings))
    else:
        TextReport().findings(findings)
    if any(found.state is not State.PRESENT and found.name not in _OPTIONAL for found in findings):
        raise typer.Exit(Exit.MISSING)
