"""`tilewright list`: what can be made, and which examples there are."""

from collections.abc import Iterator
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
        console.result("\n".join(_lines(families, references) if family is None else _details(families[0])))


def _lines(families: "tuple[Family, ...]", references: "tuple[ReferenceOperator, ...]") -> Iterator[str]:
    names = [*(family.name for family in families), *(reference.name for reference in references)]
    width = max(map(len, names)) + 2
    yield "Families: tilewright new OP --family NAME"
    for family in families:
        yield f"  {family.name:<{width}}{family.summary}"
        if family.variants:
            yield f"  {'':<{width}}variants: {', '.join(variant.name for variant in family.variants)}"
        gradient = "with" if family.backward else "without"
        yield f"  {'':<{width}}{', '.join(family.dtypes)}; {gradient} gradient"
    if references:
        yield "Reference operators:"
    for reference in references:
        yield f"  {reference.name:<{width}}{reference.summary}"


def _details(family: "Family") -> Iterator[str]:
    yield f"{family.name}: {family.summary}"
    yield f"  computes   {family.computes}"
    for variant in family.variants:
        yield f"  variant    {variant.name}: {variant.summary}"
    for question in family.questions:
        yield f"  option     --{question.replace('_', '-')}"
    yield f"  gradient   {'with --backward' if family.backward else 'none'}"
    yield f"  dtypes     {', '.join(family.dtypes)}"
    yield f"  by default {', '.join(family.default_dtypes)}"
    yield f"  measured   in {family.metric}"
