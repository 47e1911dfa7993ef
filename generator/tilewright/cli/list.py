"""`tilewright list`: what can be made, and which examples there are."""

from dataclasses import asdict
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from tilewright.cli.console import Json

if TYPE_CHECKING:
    from tilewright.catalogue.families import Family
    from tilewright.catalogue.references import ReferenceOperator


def list_(
    family: Annotated[str | None, typer.Argument(help="Only this family, with everything about it.")] = None,
    json: Json = False,
) -> None:
    """List the families of operators with their variants, and the reference operators."""
    from tilewright.catalogue.families import find_family
    from tilewright.catalogue.families import read_families
    from tilewright.catalogue.references import read_reference_operators
    from tilewright.cli import console
    from tilewright.render import locate

    source = locate()
    families = read_families(source.partials)
    if family is not None:
        families = (find_family(family, families),)
    references = () if family is not None else read_reference_operators(source.reference_operators)
    if json:
        console.document(
            {
                "families": [asdict(found) for found in families],
                "reference_operators": [asdict(found) for found in references],
            }
        )
    else:
        _show(families, references)


def _show(families: "tuple[Family, ...]", references: "tuple[ReferenceOperator, ...]") -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table("family", "computes", "variants", "dtypes", "gradient", box=box.SIMPLE_HEAD, title_justify="left")
    for found in families:
        variants = ", ".join(variant.name for variant in found.variants)
        dtypes = ", ".join(found.dtypes)
        table.add_row(found.name, found.summary, variants or "-", dtypes, "yes" if found.backward else "no")
    console = Console(highlight=False)
    console.print(table)
    if references:
        table = Table("reference operator", "what it computes", box=box.SIMPLE_HEAD)
        for reference in references:
            table.add_row(reference.name, reference.summary)
        console.print(table)
