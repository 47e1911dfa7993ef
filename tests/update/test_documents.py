"""What `--json` prints is what its schema says."""

import importlib.resources
import json

import pytest

from tests.support.releases import commit

jsonschema = pytest.importorskip("jsonschema")
KERNEL = "my_ops/swish/cutile.py"


def check(document: str, schema: str) -> None:
    schemas = importlib.resources.files("tilewright.report") / "schemas"
    jsonschema.validate(json.loads(document), json.loads((schemas / f"{schema}.schema.json").read_text()))


def test_of_an_update(tilewright, host):
    _, rest = (host / KERNEL).read_text().split("\n", 1)
    (host / KERNEL).write_text(f'"""Mine."""\n{rest}')
    commit(host)
    check(tilewright("update", "--all", "--diff", "--json").stdout, "update")
    check(tilewright("update", "--check", "--json").stdout, "update-check")
    check(tilewright("update", "--all", "--json").stdout, "update")
    check(tilewright("update", "--abort", "--json").stdout, "update-end")


def test_of_status_and_detach(tilewright, host):
    check(tilewright("detach", "swish", "kernel", "--json").stdout, "changes")
    check(tilewright("status", "--json").stdout, "status")
