"""The table of functions is that of the installed package."""

import inspect
from importlib.metadata import version
from typing import Any

import pytest

from tilewright.rules.kernel.replacements import FUNCTIONS_INSTEAD
from tilewright.rules.kernel.replacements import METHODS_INSTEAD
from tilewright.rules.kernel.replacements import RENAMED
from tilewright.rules.tile_api import DTYPES
from tilewright.rules.tile_api import FUNCTIONS
from tilewright.rules.tile_api import OTHER_NAMES
from tilewright.rules.tile_api import TILE_METHODS
from tilewright.rules.tile_api import TILE_PROPERTIES

ct: Any = pytest.importorskip("cuda.tile")
pytestmark = pytest.mark.skipif(
    not version("cuda-tile").startswith("1.7."), reason="the table is that of cuda-tile 1.7"
)


def test_no_name_of_the_package_is_missing() -> None:
    public = {name for name in dir(ct) if not name.startswith("_")}
    assert public - DTYPES - OTHER_NAMES - set(FUNCTIONS) == set()
    assert set(FUNCTIONS) | DTYPES | OTHER_NAMES <= public


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_parameters_are_those_of_the_function(name: str) -> None:
    parameters = inspect.signature(getattr(ct, name)).parameters.values()
    named = [each for each in parameters if each.kind is not each.VAR_POSITIONAL]
    signature = FUNCTIONS[name]
    assert signature.positional == tuple(each.name for each in named if each.kind is not each.KEYWORD_ONLY)
    assert signature.keyword == tuple(each.name for each in named if each.kind is each.KEYWORD_ONLY)
    assert signature.required == {each.name for each in named if each.default is each.empty}
    assert signature.by_position == {each.name for each in named if each.kind is each.POSITIONAL_ONLY}
    assert signature.variadic == (len(named) < len(list(parameters)))


def test_methods_of_tiles_are_those_of_the_class() -> None:
    public = {name for name in dir(ct.Tile) if not name.startswith("_")}
    assert public == TILE_METHODS | TILE_PROPERTIES


def test_replacements_are_for_what_does_not_exist_and_name_what_does() -> None:
    assert not [name for name in FUNCTIONS_INSTEAD if hasattr(ct, name)]
    assert not [name for name in METHODS_INSTEAD if hasattr(ct.Tile, name)]
    assert not [name for name in RENAMED.values() if not hasattr(ct, name)]
