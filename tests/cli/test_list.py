"""`tilewright list` shows what can be made."""

import json

from tilewright.catalogue.families import read_families
from tilewright.render import locate


def test_every_family_is_listed(tilewright):
    result = tilewright("list")
    assert result.exit_code == 0
    for family in read_families(locate().partials):
        assert family.name in result.stdout


def test_json_has_stable_keys(tilewright):
    document = json.loads(tilewright("list", "--json").stdout)
    assert document.keys() == {"families", "reference_operators"}
    assert document["families"][0].keys() == {
        "name",
        "title",
        "summary",
        "computes",
        "variants",
        "questions",
        "metric",
        "dtypes",
        "default_dtypes",
        "backward",
    }


def test_one_family(tilewright):
    document = json.loads(tilewright("list", "elementwise", "--json").stdout)
    assert [family["name"] for family in document["families"]] == ["elementwise"]


def test_an_unknown_family_is_refused(tilewright):
    result = tilewright("list", "elementwse")
    assert result.exit_code == 2
    assert "did you mean elementwise?" in result.stderr
