"""`tilewright status`: how far each operator is."""

from tilewright.cli.console import Json


def status(json: Json = False) -> None:
    """Show operators x six steps x template version, as far as the files tell; nothing is run."""
    from tilewright import __version__
    from tilewright.cli import console
    from tilewright.cli.target import require_host
    from tilewright.report import json as documents
    from tilewright.report.text import TextReport
    from tilewright.verify.status import read_status

    host = require_host()
    rows = read_status(host)
    if json:
        console.document(documents.status(host, rows, __version__))
    elif rows:
        TextReport().status(rows, __version__)
    else:
        console.message(f"{host.root} has no operators yet: tilewright new my_op")
