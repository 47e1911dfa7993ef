"""Write the reference pages that follow from the code, the template and the schemas: python docs/generate.py."""

import json
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

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = ROOT / "template"
PARTIALS = TEMPLATE / "_partials"
RESULTS = ROOT / "benchmarks/results/h200.json"
SCHEMAS = ROOT / "generator/tilewright/report/schemas"
ARGUMENTS = ("a", "b", "c")


def main() -> None:
    """Write every page."""
    for name, text in pages().items():
        (ROOT / "docs/reference" / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """The text of every page, by its name in `docs/reference`."""
    return {
        "cli.md": _page("Command line", "the commands themselves", cli()),
        "families.md": _page("Families and functions", "`template/_partials`", families()),
        "performance.md": _page("Performance", "`benchmarks/results/h200.json`", performance()),
        "json.md": _page("JSON documents", "the schemas in `generator/tilewright/report/schemas`", documents()),
    }


def _page(title: str, source: str, lines: Iterator[str]) -> str:
    note = f"Generated from {source}: do not edit it, run `python docs/generate.py`."
    return "\n".join([f"# {title}", "", f"> {note}", "", *lines]).rstrip() + "\n"


def _table(*columns: str, rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    """A table, or nothing where there are no rows."""
    cells = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    if cells:
        yield f"| {' | '.join(columns)} |"
        yield "|" + "---|" * len(columns)
        yield from (f"| {row} |".replace("|  |", "| |") for row in cells)
        yield ""


# Performance


def performance() -> Iterator[str]:
    """Rates of the reference operators beside their peers, as one run of `benchmarks/peers.py` measured them."""
    run = json.loads(RESULTS.read_text(encoding="utf-8"))
    environment, limits = run["environment"], run["limits"]
    versions = ", ".join(
        f"{name} {environment[name]}" for name in ("driver", "torch", "triton", "cuda-tile", "tilegym")
    )
    yield f"One run on {environment['date']}, on one {environment['gpu']} ({versions}), bf16:"
    yield from ("", "```text", environment["command"], "```", "")
    yield (
        f"Limits measured in the same run: copy {limits['copy_GBps']:.0f} GB/s, torch's product of 8192x8192 matrices"
        f" {limits['matmul_TFLOPS']:.0f} TFLOP/s. A rate is the work of the problem over the median time. The fraction"
        " is of the copy, for products of torch. TileGym is its fastest variant. Absolute rates differ between runs:"
        " compare within one."
    )
    yield ""
    cases: dict[tuple[str, ...], dict[str, float]] = {}
    for record in run["records"]:
        case = cases.setdefault((record["op"], "x".join(map(str, record["shape"])), record["unit"]), {})
        if "rate" in record:
            case[record["who"]] = record["rate"]
    yield from _table(
        "Operator",
        "Shape",
        "Unit",
        "tilewright",
        "Fraction",
        "torch",
        "torch.compile",
        "TileGym",
        rows=(_rates(*case, rates, limits["copy_GBps"]) for case, rates in cases.items()),
    )


def _rates(op: str, shape: str, unit: str, rates: Mapping[str, float], copy: float) -> tuple[str, ...]:
    own = rates["tilewright"]
    fraction = own / (copy if unit == "GB/s" else rates["torch"])
    tilegym = max((rate for who, rate in rates.items() if who.startswith("tilegym")), default=None)
    others = (rates.get("torch"), rates.get("torch.compile"), tilegym)
    return (
        op,
        shape,
        unit,
        f"{own:.0f}",
        f"{fraction:.2f}",
        *("-" if rate is None else f"{rate:.0f}" for rate in others),
    )


# Command line


def cli() -> Iterator[str]:
    """Every verb with its arguments and options."""
    group: Any = typer.main.get_command(app)
    yield from ("`tilewright VERB --help` shows the same in a terminal. Options that stand before the verb:", "")
    yield from _table("option", "what it does", rows=map(_parameter, group.params))
    for name, command in group.commands.items():
        arguments = " ".join(_placeholder(parameter) for parameter in command.params if not _is_option(parameter))
        yield from (f"## tilewright {name}", "", command.help, "")
        yield from ("```text", f"tilewright {name} [OPTIONS] {arguments}".rstrip(), "```", "")
        yield from _table("argument or option", "what it does", rows=map(_parameter, command.params))
    yield "Exit statuses: [exit-codes.md](exit-codes.md). Documents of `--json`: [json.md](json.md)."


def _parameter(parameter: Any) -> tuple[str, str]:
    if not _is_option(parameter):
        return f"`{_placeholder(parameter)}`", parameter.help
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    value = "" if parameter.is_flag else f" `{parameter.metavar or parameter.opts[0].lstrip('-').upper()}`"
    notes = [parameter.help]
    if parameter.default and not parameter.is_flag:
        notes.append(f"Default: {parameter.default:g}.")
    if parameter.multiple:
        notes.append("May be given several times.")
    return f"{names}{value}", " ".join(notes)


def _is_option(parameter: Any) -> bool:
    return bool(parameter.opts[0].startswith("-"))


def _placeholder(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name.upper()).strip("[].")
    return (name if parameter.required else f"[{name}]") + ("..." if parameter.nargs == -1 else "")


# Families


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
    yield from _table(
        "variant",
        "computes",
        "dtypes",
        rows=((f"`{v.name}`", v.summary, _dtypes(fewer.get(v.name, family.dtypes), family)) for v in family.variants),
    )
    if not family.variants:
        yield from (f"Dtypes: {_dtypes(family.dtypes, family)}.", "")
    gradient = "Gradient: with `--backward`" if family.backward else "No gradient"
    yield from (f"{gradient}. Measured in {family.metric}.", "")
    yield from _parameters(family)
    yield from _options((name for name in family.questions if name != "variant"), questions)


def _dtypes(names: tuple[str, ...], family: Family) -> str:
    """The default dtypes in bold."""
    return ", ".join(f"**{name}**" if name in family.default_dtypes else name for name in names)


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
    yield from _table("option", "what the template asks", rows=iter(rows))


def _parameters(family: Family) -> Iterator[str]:
    """The parameters of the operator, once for all variants that have the same."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATE), extensions=["jinja2_ansible_filters.AnsibleCoreFiltersExtension"]
    )
    template = environment.get_template(f"_partials/{family.name}/parameters.yml.jinja")
    variants: dict[str, list[str]] = {}
    for variant in [variant.name for variant in family.variants] or [""]:
        answers = {"partials": "_partials", "family": family.name, "variant": variant, "formula": "x * sigmoid(x)"}
        variants.setdefault(template.render(answers), []).append(variant)
    for text, names in variants.items():
        of = f" of {', '.join(f'`{name}`' for name in names)}" if len(variants) > 1 else ""
        example = " for the formula `x * sigmoid(x)`" if "formula" in family.questions else ""
        yield from (f"Parameters{of}{example}, before `out` and `**kwargs`:", "")
        yield from _table("parameter", "type", "default", "what it is", rows=map(_row, yaml.safe_load(text)))


def _row(parameter: Mapping[str, str]) -> tuple[str, ...]:
    default = f"`{parameter['default']}`" if "default" in parameter else "required"
    return f"`{parameter['name']}`", f"`{parameter['type']}`", default, parameter["doc"]


def _functions() -> Iterator[str]:
    table = read_data(PARTIALS / "functions.yml")
    yield from ("## Functions of formulas", "")
    yield from (
        "What a formula calls, and what that becomes in the kernel and in the PyTorch reference. A name that begins",
        "with `_` is a device function, written into the kernel file when it is used. The gradient of each is known.",
        "",
    )
    yield from _table(
        "function",
        "what it is",
        "cuTile",
        "PyTorch",
        rows=(
            (
                f"`{name}({', '.join(ARGUMENTS[: function.arguments])})`",
                _about(table[name]),
                f"`{function.cutile}`",
                f"`{function.torch}`",
            )
            for name, function in read_functions(PARTIALS).items()
        ),
    )


def _about(entry: Mapping[str, Any]) -> str:
    narrow = "accuracy of float32 only" if entry.get("float64") is False else ""
    return "; ".join(filter(None, [entry.get("doc", ""), narrow]))


# JSON


def documents() -> Iterator[str]:
    """Every schema as tables of keys."""
    yield from ("With `--json` a command prints one document on stdout and nothing else. The keys are stable.", "")
    for path in sorted(SCHEMAS.glob("*.schema.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        title = path.name.removesuffix(".schema.json")
        yield from (f"## {title}", "", f"{schema['title']}.", "")
        rows = ((f"`{key}`", kind, text) for key, kind, text in _keys(schema, schema, ""))
        yield from _table("key", "type", "what it is", rows=rows)


def _keys(node: Mapping[str, Any], schema: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    required = node.get("required", ())
    for name, found in node.get("properties", {}).items():
        value = _resolved(found, schema)
        kind, note = _kind(value, schema), value.get("description", "")
        yield f"{prefix}{name}", kind if name in required else f"{kind}, optional", note
        items = _resolved(value.get("items", {}), schema)
        yield from _keys(_object(value), schema, f"{prefix}{name}.")
        yield from _keys(items, schema, f"{prefix}{name}[].")


def _resolved(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def _object(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """The node itself, or the one of its alternatives that has keys."""
    return next((part for part in node.get("anyOf", ()) if "properties" in part), node)


def _kind(node: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "enum" in node:
        return " or ".join(f"`{value}`" for value in node["enum"])
    if "anyOf" in node:
        return " or ".join(_kind(part, schema) for part in node["anyOf"])
    if isinstance(node.get("type"), list):
        return " or ".join(node["type"])
    if node["type"] == "array":
        return f"list of {_kind(_resolved(node['items'], schema), schema)}"
    return str(node["type"])


if __name__ == "__main__":
    main()
