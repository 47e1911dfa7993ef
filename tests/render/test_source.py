"""The template is found in a wheel and in a checkout."""

import pytest

from tilewright.errors import MissingError
from tilewright.render import source


def test_a_checkout_records_itself():
    found = source.locate()
    assert (found.template / "copier.yml").is_file()
    assert found.recorded is None


def test_a_wheel_carries_the_template(tmp_path, monkeypatch):
    (tmp_path / "_bundled" / "template").mkdir(parents=True)
    monkeypatch.setattr(source, "PACKAGE", tmp_path)
    assert source.locate().template == tmp_path / "_bundled" / "template"


def test_a_package_without_template_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "PACKAGE", tmp_path / "a" / "b")
    with pytest.raises(MissingError, match="no template"):
        source.locate()
