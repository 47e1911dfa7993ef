"""What a name may be where it is used."""

import ast
from pathlib import Path
from textwrap import indent

import pytest

from tilewright.rules.reaching import values_of
from tilewright.rules.source import Module


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("a = 1\nuse(a)", ["1"]),
        ("a = 1\na = 2\nuse(a)\na = 3", ["2"]),
        ("a = b = 1\nuse(b)", ["1"]),
        ("a, b = 1, 2\nuse(b)", ["2"]),
        ("a, b = x.shape\nuse(b)", ["x.shape[1]"]),
        ("a = 1\nb = a\na = 2\nuse(b)", ["1"]),
        ("if c:\n    a = 1\nelse:\n    a = 2\nuse(a)", ["1", "2"]),
        ("a = 0\nif c:\n    a = 1\nuse(a)", ["1", "0"]),
        ("a = 0\nif c:\n    a = 1\nelse:\n    return\nuse(a)", ["1"]),
        ("if c:\n    a = 1\n    use(a)\nelse:\n    a = 2", ["1"]),
        ("a = 1 if c else 2\nuse(a)", ["1", "2"]),
        ("with c:\n    a = 1\nuse(a)", ["1"]),
        ("a = 1\ndef inner():\n    use(a)", ["1"]),
        ("a = 1\nf = lambda b: use(a)", ["1"]),
        ("a = 1\nf = lambda a: use(a)", ["a"]),
        ("a = 1\nf = [use(a) for a in c]", ["a"]),
        ("x = 1\nuse(x)", ["1"]),
        ("use(x)", ["x"]),
        ("if c:\n    x = 1\nuse(x)", ["x"]),
        ("for a in c:\n    use(a)", ["a"]),
        ("a = 1\na += 1\nuse(a)", ["a"]),
        ("use(LIMIT)", ["64"]),
        ("use(unknown)", ["unknown"]),
    ],
)
def test_values(body: str, values: list[str]) -> None:
    text = "LIMIT = 64\n\ndef host(x, c):\n" + indent(body, "    ") + "\n"
    module = Module(Path("my_op.py"), text)
    (call,) = (node for node in module.nodes(ast.Call) if isinstance(node.func, ast.Name) and node.func.id == "use")
    assert [ast.unparse(value) for value in values_of(module, call.args[0], call)] == values
