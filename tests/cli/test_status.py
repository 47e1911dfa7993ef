"""`tilewright status` shows how far each operator is."""

import json

from tests.support.hosts import tiny_host
from tilewright import __version__


def test_table(here, tilewright):
    tiny_host(here)
    header, row, *changelog = tilewright("status").stdout.splitlines()
    assert header.split() == ["operator", "stub", "kernel", "registration", "tests", "benchmark", "verify", "template"]
    assert row.split()[:7] == ["scale_add", *["ok"] * 5, "skipped"]
    assert "behind" in row
    assert f"changed in {__version__}:" in changelog


def test_json(here, tilewright):
    tiny_host(here)
    (operator,) = json.loads(tilewright("status", "--json").stdout)["operators"]
    assert (operator["name"], len(operator["steps"])) == ("scale_add", 6)


def test_host_without_operators(here, tilewright):
    (here / ".tilewright").mkdir()
    (here / ".tilewright" / "host.yml").write_text("layout: standalone\npackage: my_ops\n")
    result = tilewright("status")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "tilewright new" in result.stderr
