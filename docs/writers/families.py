"""The page on families and the functions of formulas, from the template."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import typer
import yaml

from tilewright.catalogue.data_file import read_data
from tilewright.catalogue.families import Family
from tilewright.catalogue.families import read_families
from tilewright.catalogue.functions import read_functions
from tilewright.cli.app import app
from writers.tables import table

TEMPLATE = Path(__file__).resolve().parents[2] / "template"
PARTIALS = TEMPLATE / "_partials"
ARGUMENTS = ("a", "b", "c")


def families() -> Iterator[str]:
    """Every family with its variants, parameters and options, then the functions of formulas."""
    questions = read_data(TEMPLATE / "copier.yml")
    found = read_families(PARTIALS)
    yield from (
        "An operator is made of one family: `tilewright new OP --family NAME`. Dtypes in bold are the default.",
        "",
    )
    for family in found:
        yield from _family(family, questions)
    particular = {"variant", *(name for family in found for name in family.questions)}
    recorded = (name for name, entry in questions.items() if name[0] != "_" and entry.get("when") is not False)
    yield from ("## Options of every family", "")
    yield from _options((name for name in recorded if name not in particular), questions)
    yield from _functions()


def _family(family: Family, questions: Mapping[str, Any]) -> Iterator[str]:
    data = read_data(PARTIALS / family.name / "family.yml")
    fewer = data.get("variant_dtypes", {})
    yield from (f"## {family.title}: `{family.name}`", "", family.summary, "", "```text", family.computes, "```", "")
    yield from table(
        "variant",
        "computes",
        "dtypes",
        rows=((f"`{v.name}`", v.summary, _dtypes(fewer.get(v.name, family.dtypes), family)) for v in family.variants),
    )
    if not family.variants:
        yield from (f"Dtypes: {_dtypes(family.dtypes, family)}.", "")
    gradient = "Gradient: with `--backward`" if family.backward else "No gradient"
    others = "".join(f", `{name}` in {metric}" for name, metric in data.get("variant_metric", {}).items())
    yield from (f"{gradient}. Measured in {family.metric}{others}.", "")
    yield from _parameters(family, questions)
    yield from _options((name for name in family.questions if name != "variant"), questions)


def _dtypes(names: tuple[str, ...], family: Family) -> str:
    """The default dtypes in bold: all of a variant that knows none of the family's."""
    default = set(names) & set(family.default_dtypes) or names
    return ", ".join(f"**{name}**" if name in default else name for name in names)


def _options(names: Iterable[str], questions: Mapping[str, Any]) -> Iterator[str]:
    """What the template asks, with the choices, and how the answer is given on the command line."""
    group: Any = typer.main.get_command(app)
    verb = {parameter.name for parameter in group.commands["new"].params}
    rows = []
    for name in names:
        help_, choices = questions[name]["help"], questions[name].get("choices", {})
        given = f"`--{name.replace('_', '-')}`" if name in verb else f"`--data {name}=...`"
        lines = [help_, *choices] if isinstance(choices, dict) else [help_, ", ".join(choices)]
        rows.append(("the name itself" if name == "op" else given, "<br>".join(filter(None, lines))))
    yield from table("option", "what the template asks", rows=iter(rows))


def _parameters(family: Family, questions: Mapping[str, Any]) -> Iterator[str]:
    """The parameters of the operator, once for all variants that have the same."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATE),
        extensions=["jinja2_ansible_filters.AnsibleCoreFiltersExtension"],
        undefined=jinja2.StrictUndefined,
    )
    template = environment.get_template(f"_partials/{family.name}/parameters.yml.jinja")
    defaults = {name: questions[name]["default"] for name in family.questions} | {"dtypes": family.default_dtypes}
    variants: dict[str, list[str]] = {}
    for variant in [variant.name for variant in family.variants] or [""]:
        chosen = {"family": family.name, "variant": variant, "formula": "x * sigmoid(x)"}
        variants.setdefault(template.render(defaults | chosen, partials="_partials"), []).append(variant)
    for text, names in variants.items():
        of = f" of {', '.join(f'`{name}`' for name in names)}" if len(variants) > 1 else ""
        example = " for the formula `x * sigmoid(x)`" if "formula" in family.questions else ""
        yield from (f"Parameters{of}{example}, before `out` and `**kwargs`:", "")
        yield from table("parameter", "type", "default", "what it is", rows=map(_row, yaml.safe_load(text)))


def _row(parameter: Mapping[str, str]) -> tuple[str, ...]:
    default = f"`{parameter['default']}`" if "default" in parameter else "required"
    return f"`{parameter['name']}`", f"`{parameter['type']}`", default, parameter["doc"]


def _functions() -> Iterator[str]:
    entries = read_data(PARTIALS / "functions.yml")
    yield from ("## Functions of formulas", "")
    yield from (
        "What a formula calls, and what that becomes in the kernel and in the PyTorch reference. A name that begins",
        "with `_` is a device function, written into the kernel file when it is used. The gradient of each is known.",
        "",
    )
    yield from table(
        "function",
        "what it is",
        "cuTile",
        "PyTorch",
        rows=(
            (
                f"`{name}({', '.join(ARGUMENTS[: function.arguments])})`",
                _about(entries[name]),
                f"`{function.cutile}`",
                f"`{function.torch}`",
            )
            for name, function in read_functions(PARTIALS).items()
        ),
    )


def _about(entry: Mapping[str, Any]) -> str:
    narrow = "accuracy of float32 only" if entry.get("float64") is False else ""
    return "; ".join(filter(None, [entry.get("doc", ""), narrow]))
