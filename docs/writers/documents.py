"""The page on JSON documents, from their schemas."""

import json
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from writers.tables import table

SCHEMAS = Path(__file__).resolve().parents[2] / "generator/tilewright/report/schemas"


def documents() -> Iterator[str]:
    """Every schema as tables of keys."""
    yield from ("With `--json` a command prints one document on stdout and nothing else. The keys are stable.", "")
    for path in sorted(SCHEMAS.glob("*.schema.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        title = path.name.removesuffix(".schema.json")
        yield from (f"## {title}", "", f"{schema['title']}.", "")
        rows = ((f"`{key}`", kind, text) for key, kind, text in _keys(schema, schema, ""))
        yield from table("key", "type", "what it is", rows=rows)


def _keys(node: Mapping[str, Any], schema: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    required = node.get("required", ())
    for name, found in node.get("properties", {}).items():
        value = _resolved(found, schema)
        kind, note = _kind(value, schema), value.get("description", "")
        yield f"{prefix}{name}", kind if name in required else f"{kind}, optional", note
        items = _resolved(value.get("items", {}), schema)
        yield from _keys(_object(value, schema), schema, f"{prefix}{name}.")
        yield from _keys(items, schema, f"{prefix}{name}[].")


def _resolved(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def _object(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The node itself, or the one of its alternatives that has keys."""
    parts = (_resolved(part, schema) for part in node.get("anyOf", ()))
    return next((part for part in parts if "properties" in part), node)


def _kind(node: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "enum" in node:
        return " or ".join(f"`{value}`" for value in node["enum"])
    if "anyOf" in node:
        return " or ".join(_kind(_resolved(part, schema), schema) for part in node["anyOf"])
    if isinstance(node.get("type"), list):
        return " or ".join(node["type"])
    if node["type"] == "array":
        return f"list of {_kind(_resolved(node['items'], schema), schema)}"
    return str(node["type"])
