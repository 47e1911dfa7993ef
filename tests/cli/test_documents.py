"""What `--json` prints is what its schema says."""

import importlib.resources
import json

import pytest

jsonschema = pytest.importorskip("jsonschema")


def check(document: str, schema: str) -> None:
    schemas = importlib.resources.files("tilewright.report") / "schemas"
    jsonschema.validate(json.loads(document), json.loads((schemas / f"{schema}.schema.json").read_text()))


@pytest.mark.parametrize("arguments", [["--dry-run"], ["--diff"], []])
def test_new_and_remove(tilewright, here, arguments):
    check(tilewright("new", "my_op", "--json", *arguments).stdout, "changes")
    tilewright("new", "my_op")
    check(tilewright("remove", "my_op", "--json", *arguments).stdout, "changes")


def test_list(tilewright):
    check(tilewright("list", "--json").stdout, "list")
