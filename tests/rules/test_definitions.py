"""Assignments that may reach a use, and what the name may be for them."""

import ast
import textwrap
from pathlib import Path

import pytest

from tilewright.rules.definitions import definitions
from tilewright.rules.definitions import values_of
from tilewright.rules.hosts.values import integers
from tilewright.rules.hosts.values import is_dimension
from tilewright.rules.source import Module


def use(text: str) -> tuple[Module, ast.Name]:
    """The module and the argument of its last `use(...)`."""
    module = Module(Path("host.py"), textwrap.dedent(text))
    calls = [node for node in module.nodes(ast.Call) if isinstance(node.func, ast.Name) and node.func.id == "use"]
    argument = max(calls, key=lambda call: call.lineno).args[0]
    assert isinstance(argument, ast.Name)
    return module, argument


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    a = 1\n    a = 2\n    use(a)\n    a = 3", {2}),
        ("def f(c):\n    a = 1\n    if c:\n        a = 2\n    use(a)", {1, 2}),
        ("def f(c):\n    a = 1\n    if c:\n        a = 2\n    else:\n        a = 3\n    use(a)", {2, 3}),
        ("def f(c):\n    if c:\n        a = 2\n    else:\n        raise ValueError\n    use(a)", {2}),
        ("def f(c):\n    if c:\n        a = 1\n        use(a)\n    else:\n        a = 2", {1}),
        ("def f(n):\n    a = 1\n    for i in n:\n        use(a)\n        a = 2", {1, 2}),
        ("def f(n):\n    a = 1\n    with n:\n        a = 2\n    use(a)", {2}),
        ("def f():\n    a, b = 1, 2\n    use(b)", {2}),
        ("B = 4\ndef f():\n    use(B)", {4}),
        ("def f():\n    a = 1\n    g = lambda: use(a)\n    a = 2", {1, 2}),
        ("def f(c):\n    a = 2 if c else 8\n    b = a * 2\n    use(b)", {4, 16}),
        ("def f(c):\n    b = c\n    use(b)", None),
        ("def f(c):\n    a = 1\n    a += c\n    use(a)", None),
        ("def f():\n    a = 1 // 0\n    use(a)", None),
    ],
)
def test_integers_that_a_name_can_be(text: str, expected: set[int] | None) -> None:
    module, name = use(text)
    assert integers(module, name) == expected


def test_a_parameter_reaches_until_it_is_assigned() -> None:
    module, name = use("def f(a, c):\n    if c:\n        a = 1\n    use(a)")
    assert sorted(each.parameter for each in definitions(module).reaching(name)) == [False, True]


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
        ("for i in c:\n    a = 1\n    use(a)\n    a = 2", ["1"]),
        ("a = 1\nfor i in c:\n    use(a)\n    a = 2", ["2", "1"]),
        ("a = 1\nb = c.b\nwhile c:\n    a = b\n    b = a\nuse(b)", ["c.b", "c.b"]),
        ("a = 1\nf = [lambda: use(a) for a in c]\na = 2", ["a"]),
        ("a = 1\nf = [(lambda a=2: use(a)) for b in c]", ["a"]),
    ],
)
def test_values_of_a_name(body: str, values: list[str]) -> None:
    module, name = use("LIMIT = 64\n\ndef host(x, c):\n" + textwrap.indent(body, "    ") + "\n")
    assert [ast.unparse(value) for value in values_of(module, name, name)] == values


@pytest.mark.parametrize(
    "function",
    ["run = lambda: use(a)", "def run():\n    b = a\n    use(b)", "run = lambda: [use(a) for b in c]"],
)
def test_a_nested_function_reads_what_is_assigned_when_it_runs(function: str) -> None:
    body = f"a = 1\n{function}\na = 2\nsearch(run)\na = 3"
    module, name = use("def host(c):\n" + textwrap.indent(body, "    ") + "\n")
    (search,) = (node for node in module.nodes(ast.Call) if ast.unparse(node) == "search(run)")
    assert [ast.unparse(value) for value in values_of(module, name, search)] == ["2"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x.shape[0]", True),
        ("x.numel()", True),
        ("x.size(1) * 2", True),
        ("x.shape[0] // 2", True),
        ("2 // x.shape[0]", False),
        ("max(1, x.shape[0])", False),
        ("4", False),
    ],
)
def test_what_is_computed_from_a_shape(value: str, expected: bool) -> None:
    module, name = use(f"def f(x):\n    n = {value}\n    use(n)")
    assert is_dimension(module, name) is expected


def test_an_unpacked_shape_is_a_dimension() -> None:
    module, name = use("def f(x):\n    m, n = x.shape\n    use(n)")
    assert is_dimension(module, name)
