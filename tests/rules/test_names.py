"""What names mean, however they were imported."""

import ast

import pytest

from tilewright.rules.names import Names


@pytest.mark.parametrize(
    ("imports", "expression"),
    [
        ("import cuda.tile as ct", "ct.load"),
        ("import cuda.tile", "cuda.tile.load"),
        ("from cuda import tile", "tile.load"),
        ("from cuda import tile as T", "T.load"),
        ("from cuda.tile import load as l", "l"),
        ("import cuda.tile as ct\nread = ct.load", "read"),
        ("try:\n    import cuda.tile as ct\nexcept ImportError:\n    ct = None", "ct.load"),
        ("def f():\n    import cuda.tile as ct", "ct.load"),
    ],
)
def test_spellings_of_one_function(imports: str, expression: str) -> None:
    names = Names(ast.parse(imports))
    assert names.tile(ast.parse(expression, mode="eval").body) == "load"


@pytest.mark.parametrize(
    "statement",
    [
        "from tilegym.backend import dispatch",
        "from tilegym.backend.dispatcher import dispatch",
        "from ..backend import dispatch",
        "from .backend import dispatch",
    ],
)
def test_spellings_of_dispatch(statement: str) -> None:
    assert Names(ast.parse(statement)).backend(ast.Name("dispatch")) == "dispatch"


@pytest.mark.parametrize(("statement", "name"), [("x = 1", "x"), ("import ctypes as ct", "ct.load"), ("", "load")])
def test_other_names(statement: str, name: str) -> None:
    node = ast.parse(name, mode="eval").body
    names = Names(ast.parse(statement))
    assert (names.tile(node), names.torch(node), names.backend(node)) == (None, None, None)
