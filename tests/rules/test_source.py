"""A parsed file: places, texts and edits."""

import ast
from pathlib import Path

import pytest

from tilewright.rules.edits import apply
from tilewright.rules.source import Module

TEXT = "é = f(\r\n    'ü', (1 +\r\n     2)\r\n)\r\n\r\n\r\n@wrap\r\ndef g(x): return x\r\n"


@pytest.fixture
def module() -> Module:
    return Module(Path("my_op.py"), TEXT)


def test_the_text_of_a_node(module: Module) -> None:
    (call,) = module.nodes(ast.Call)
    assert [module.source(each) for each in call.args] == ["'ü'", "1 +\n     2"]
    assert module.source(call).startswith("f(\n")
    assert module.source(module.functions["g"]) == "def g(x): return x"


def test_the_place_of_a_function_is_its_name(module: Module) -> None:
    span = module.span(module.functions["g"])
    assert (span.line, span.column, span.end_line, span.end_column) == (8, 5, 8, 6)


def test_edits_keep_line_ends(module: Module) -> None:
    (call,) = module.nodes(ast.Call)
    assert apply(TEXT, [module.replacement(call.args[0], "a")]) == TEXT.replace("'ü'", "a")
    assert apply(TEXT, [module.added_argument(call, "k=1")]) == TEXT.replace("2)\r\n", "2), k=1\r\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()", "f(k=1)"),
        ("f(a)", "f(a, k=1)"),
        ("f((a))", "f((a), k=1)"),
        ("f(a=(1, 2))", "f(a=(1, 2), k=1)"),
        ("f(g(a))", "f(g(a), k=1)"),
        ("f((g(a)))", "f((g(a)), k=1)"),
        ("(f(a))", "(f(a, k=1))"),
    ],
)
def test_an_added_argument(before: str, after: str) -> None:
    module = Module(Path("my_op.py"), before)
    outermost = module.nodes(ast.Call)[0]
    assert apply(before, [module.added_argument(outermost, "k=1")]) == after


def test_what_is_around(module: Module) -> None:
    (name,) = (node for node in module.nodes(ast.Name) if node.id == "x")
    assert module.function_of(name) is module.functions["g"]
    assert isinstance(module.statement_of(name), ast.Return)
    assert module.function_of(module.functions["g"]) is None
