"""`tilewright remove` takes back what `tilewright new` wrote, byte for byte."""

import json
from pathlib import Path

import pytest
import yaml

from tests.support.tilegym_checkout import git


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("placement", ["main", "experimental"])
def test_in_tilegym_every_byte_is_restored(tilewright, tilegym_checkout, monkeypatch, placement):
    monkeypatch.chdir(tilegym_checkout)
    assert tilewright("new", "my_op", "--placement", placement).exit_code == 0
    assert git(tilegym_checkout, "status", "--short")
    assert tilewright("remove", "my_op").exit_code == 0
    assert git(tilegym_checkout, "status", "--short", "--ignored") == ""


def test_another_operator_stays(tilewright, here):
    tilewright("new", "first")
    before = tree(here)
    assert tilewright("new", "second").exit_code == 0
    assert tilewright("remove", "second").exit_code == 0
    assert tree(here) == before
    assert not (here / "my_ops" / "second").exists()


def test_in_tilegym_another_operator_stays(tilewright, tilegym_checkout, monkeypatch):
    monkeypatch.chdir(tilegym_checkout)
    tilewright("new", "first_op")
    before = tree(tilegym_checkout)
    assert tilewright("new", "second_op").exit_code == 0
    assert tilewright("remove", "second_op").exit_code == 0
    assert tree(tilegym_checkout) == before


def test_an_edited_file_is_kept_unless_forced(tilewright, here):
    tilewright("new", "my_op")
    kernel = here / "my_ops" / "my_op" / "cutile.py"
    kernel.write_text(kernel.read_text() + "# mine\n")
    result = tilewright("remove", "my_op")
    assert result.exit_code == 2
    assert "my_ops/my_op/cutile.py: edited" in result.stderr
    assert "--force" in result.stderr
    assert kernel.exists()
    assert tilewright("remove", "my_op", "--force").exit_code == 0
    assert not kernel.exists()


def test_a_dry_run_shows_what_would_go(tilewright, here):
    tilewright("new", "my_op")
    before = tree(here)
    result = tilewright("remove", "my_op", "--dry-run", "--json")
    assert {file["kind"] for file in json.loads(result.stdout)["files"]} == {"remove"}
    assert tree(here) == before


def test_an_unknown_operator_is_refused(tilewright, here):
    tilewright("new", "my_op")
    result = tilewright("remove", "other")
    assert result.exit_code == 2
    assert "no operator other" in result.stderr


def test_without_a_host_there_is_nothing_to_remove(tilewright, here):
    result = tilewright("remove", "my_op")
    assert result.exit_code == 2
    assert "no host repository" in result.stderr


def test_a_broken_record_is_refused(tilewright, here):
    tilewright("new", "my_op")
    (here / ".tilewright" / "ops" / "my_op.yml").write_text("op: other\n")
    result = tilewright("remove", "my_op")
    assert result.exit_code == 2
    assert "does not record the operator" in result.stderr


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [("layout", "tilegym", "has the layout tilegym"), ("family", "nope", "Invalid choice"), ("skip", 3, "has skip: 3")],
)
def test_a_record_that_was_changed_by_hand_is_a_message(tilewright, here, key, value, what):
    tilewright("new", "my_op")
    record = here / ".tilewright" / "ops" / "my_op.yml"
    record.write_text(yaml.safe_dump({**yaml.safe_load(record.read_text()), key: value}))
    before = tree(here)
    result = tilewright("remove", "my_op")
    assert result.exit_code == 2
    assert what in result.stderr
    assert "--debug" not in result.stderr
    assert tree(here) == before
