"""`tilewright status`: how far each operator is."""

from tilewright.cli.console import Json


def status(json: Json = False) -> None:
    """Show operators x six steps x template version, as far as the files tell; nothing is run."""
    from tilewright.cli import console
    from tilewright.cli.target import require_host
    from tilewright.render import locate
    from tilewright.report import json as documents
    from tilewright.report.text import TextReport
    from tilewright.update import own_version
    from tilewright.update import read_standing
    from tilewright.verify.status import read_status

    host, source = require_host(), locate()
    rows = read_status(host)
    installed = own_version(source).removeprefix("v")
    standing = read_standing(host, source, [row.name for row in rows if row.template_version])
    if json:
        console.document(documents.status(host, rows, installed, standing))
    elif rows:
        TextReport().status(rows, installed, standing)
    else:
        console.message(f"{host.root} has no operators yet: tilewright new my_op")
