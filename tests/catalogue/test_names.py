"""Operator names that are refused, each with a way out."""

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.catalogue.data_file import read_data
from tilewright.catalogue.names import DEVICES
from tilewright.catalogue.names import KEYWORDS
from tilewright.catalogue.names import check_operator_is_free
from tilewright.catalogue.names import check_operator_name
from tilewright.errors import OperatorExistsError
from tilewright.errors import UsageError
from tilewright.model.host import Host

ROOT = Path(__file__).parents[2]
PARTIALS = ROOT / "template" / "_partials"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "../evil",
            "class",
            "match",
            "My-Op",
            "",
            "öp",
            "1a",
            "_a",
            "a_",
            "a__b",
            "a b",
            "ops/x",
            "{{ 7*7 }}",
            "gelu\n",
        ),
        *("GELU", "con", "nul", "com1", "lpt9", "backend", "ops", "torch", "reference", "a" * 61),
        *("max", "str", "self", "test_gelu", "pytest_configure", "setup_module"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(name):
    with pytest.raises(UsageError) as error:
        check_operator_name(name, PARTIALS)
    assert 2 <= len(str(error.value).splitlines()) <= 3


@pytest.mark.parametrize("name", ["a", "gelu", "rms_norm", "w8a8_matmul", "a" * 60, "nullify"])
def test_a_snake_case_name_is_fine(name):
    check_operator_name(name, PARTIALS)


@given(st.text(max_size=70) | st.sampled_from(["D", "Max", "test_test_x", "Test-X", "test_" + "a" * 60, "class"]))
def test_the_suggested_name_is_itself_accepted(name):
    try:
        check_operator_name(name, PARTIALS)
    except UsageError as error:
        suggestion = error.hint.split()[-1]
        check_operator_name(suggestion, PARTIALS)


@pytest.mark.parametrize("name", ["copy", "random", "json"])
def test_a_single_file_hides_no_module(name):
    check_operator_name(name, PARTIALS)
    with pytest.raises(UsageError, match=f"{name} is a module that the file would hide"):
        check_operator_name(name, PARTIALS, single_file=True)


def test_the_list_of_modules_has_the_standard_library():
    modules = read_data(PARTIALS / "names.yml")["modules"].split()
    assert {name for name in sys.stdlib_module_names if re.fullmatch("[a-z][a-z0-9]*(_[a-z0-9]+)*", name)} <= {*modules}


def test_the_keywords_are_those_of_the_template():
    template = (PARTIALS / "names.jinja").read_text()
    keywords = re.search(r"set keywords = '(.*?)'", template)[1].split()
    assert set(keywords) == KEYWORDS - {"_"}
    assert len(DEVICES) == 24


@pytest.fixture
def standalone(tmp_path):
    (tmp_path / "my_ops").mkdir()
    return Host(root=tmp_path, layout="standalone", package="my_ops")


@pytest.fixture
def tilegym(tmp_path):
    (tmp_path / "src/tilegym/ops/cutile/experimental").mkdir(parents=True)
    return Host(root=tmp_path, layout="tilegym", package="src/tilegym")


def test_a_recorded_operator_exists(standalone):
    (standalone.root / ".tilewright" / "ops").mkdir(parents=True)
    (standalone.root / ".tilewright" / "ops" / "gelu.yml").touch()
    with pytest.raises(OperatorExistsError, match="operator gelu already exists"):
        check_operator_is_free("gelu", standalone)


@pytest.mark.parametrize("path", ["my_ops/gelu.py", "my_ops/gelu/x.py"])
def test_a_module_of_that_name_exists(standalone, path):
    (standalone.root / path).parent.mkdir(exist_ok=True)
    (standalone.root / path).touch()
    with pytest.raises(OperatorExistsError, match="was not written by tilewright"):
        check_operator_is_free("gelu", standalone)


def test_the_package_itself_is_no_operator(standalone):
    with pytest.raises(UsageError, match="is the package itself"):
        check_operator_is_free("my_ops", standalone)


@pytest.mark.parametrize("path", ["gelu.py", "cutile/gelu.py", "cutile/experimental/gelu.py"])
def test_a_module_of_tilegym_exists(tilegym, path):
    (tilegym.root / "src/tilegym/ops" / path).touch()
    with pytest.raises(OperatorExistsError):
        check_operator_is_free("gelu", tilegym)


def test_other_names_are_free(standalone):
    (standalone.root / "my_ops" / "gelu" / "__pycache__").mkdir(parents=True)
    check_operator_is_free("gelu", standalone)
