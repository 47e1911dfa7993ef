"""Which kernel a launch runs, with which arguments."""

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from tilewright.rules.launches import Launch
from tilewright.rules.source import Module

KERNELS = """
import cuda.tile as ct
import torch
from cuda.tile.tune import exhaustive_search

from .hints import cached_replace_hints

ConstInt = ct.Constant[int]
_CACHE = {}


@ct.kernel
def _first(X, Y, n: ConstInt):
    pass


@ct.kernel(occupancy=2)
def _second(X, n: "ct.Constant[int]"):
    pass


def _chosen(x):
    return _first.replace_hints(occupancy=x), 4

"""


def launches(host: str) -> tuple[Launch, ...]:
    return Module(Path("my_op.py"), KERNELS + dedent(host)).launches


def bound(launch: Launch) -> list[dict[str, str]]:
    return [{name: ast.unparse(value) for name, value in launch.bound(each).items()} for each in launch.kernels]


@pytest.mark.parametrize(
    "body",
    [
        "ct.launch(stream, (1,), _first, (x, y, 4))",
        "ct.launch(stream=stream, grid=(1,), kernel=_first, kernel_args=(x, y, 4))",
        "ct.launch(stream, (1,), _first.replace_hints(occupancy=4), (x, y, 4))",
        "ct.launch(stream, (1,), cached_replace_hints(_first, occupancy=4), (x, y, 4))",
        "ct.launch(stream, (1,), ct.kernel(_first._pyfunc, occupancy=4), (x, y, 4))",
        "arguments = (x, y, 4)\n    ct.launch(stream, (1,), _first, arguments)",
        "ct.launch(stream, (1,), _first, (x, y) + (4,))",
        "sizes = (y, 4)\n    ct.launch(stream, (1,), _first, (x, *sizes))",
        "_CACHE = {0: _first}\n    ct.launch(stream, (1,), _CACHE[x].replace_hints(), (x, y, 4))",
        "kernel, _ = _chosen(x)\n    ct.launch(stream, (1,), kernel, (x, y, 4))",
        "kernel = _second\n    kernel = _first\n    ct.launch(stream, (1,), kernel, (x, y, 4))",
        "_CACHE[x] = (1, _first.replace_hints())\n    _, k = _CACHE[x]\n    ct.launch(stream, (1,), k, (x, y, 4))",
        "_CACHE[x] = _first\n    ct.launch(stream, (1,), _CACHE[x], (x, y, 4))",
        "exhaustive_search(cfgs, stream, lambda cfg: (1,), _first, lambda cfg: (x, y, 4))",
        "def f(cfg):\n        return (x, y, 4)\n    exhaustive_search(cfgs, stream, lambda c: (1,), _first, f)",
    ],
)
def test_a_launch_and_its_arguments(body: str) -> None:
    (launch,) = launches(f"def host(x, y, stream, cfgs):\n    {body}\n")
    assert bound(launch) == [{"X": "x", "Y": "y", "n": "4"}]
    assert isinstance(launch.grid, ast.Tuple)


def test_a_choice_of_kernels_gives_both() -> None:
    (launch,) = launches("def host(x, s, a):\n    ct.launch(s, (1,), _first if a else _second, a)\n")
    assert [kernel.name for kernel in launch.kernels] == ["_first", "_second"]
    assert launch.arguments is None


def test_of_several_kernels_those_count_that_take_so_many_arguments() -> None:
    text = """
    def host(x, s, a):
        if a:
            kernel = _first
        else:
            kernel = _second
        ct.launch(s, (1,), kernel, (x, 4))
    """
    assert bound(launches(text)[0]) == [{"X": "x", "n": "4"}]


@pytest.mark.parametrize(
    "host",
    [
        "def host(x, s, kernel):\n    ct.launch(s, (1,), kernel, (x, 4))\n",
        "def host(x, s, other):\n    kernel = _first\n    kernel = other()\n    ct.launch(s, (1,), kernel, (x, 4))\n",
        "def host(x, s):\n    for k in [_first]:\n        ct.launch(s, (1,), k, (x, 4))\n",
        "def host(x, s):\n    _CACHE[0] = _CACHE[1]\n    ct.launch(s, (1,), _CACHE[0], (x, 4))\n",
    ],
)
def test_a_kernel_that_cannot_be_told(host: str) -> None:
    assert launches(host)[0].kernels == ()


def test_a_wrong_number_of_arguments_binds_nothing() -> None:
    (launch,) = launches("def host(x, s):\n    ct.launch(s, (1,), _first, (x, 4))\n")
    assert bound(launch) == [{}]
    assert launches("def host(x, s):\n    ct.launch(s, (1,), _first, (*x, 4))\n")[0].arguments is None


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("(x, *rest)", {"X": "x"}),
        ("(*rest, 4)", {"n": "4"}),
        ("(x, *rest, 4)", {"X": "x", "n": "4"}),
        ("(x, y, *rest, 3, 4)", {}),
    ],
)
def test_around_starred_arguments_the_others_are_known(written: str, known: dict[str, str]) -> None:
    (launch,) = launches(f"def host(x, y, rest, s):\n    ct.launch(s, (1,), _first, {written})\n")
    assert bound(launch) == [known]


def test_a_tuple_that_adds_to_itself_ends() -> None:
    text = """
    def host(x, s):
        while x:
            given = (*given, x)
            ct.launch(s, (1,), _first, given)
    """
    assert launches(text)[0].arguments is None


def test_constants_of_a_kernel() -> None:
    first, second = Module(Path("my_op.py"), KERNELS).kernels
    assert (first.constants, second.constants) == (("n",), ("n",))
    assert list(first.hints) == []
    assert list(second.hints) == ["occupancy"]


def test_helpers_of_a_kernel_are_followed() -> None:
    text = KERNELS + dedent(
        """
        def _inner(x):
            return _outer(x)

        def _outer(x):
            return _inner(x)

        @ct.kernel
        def _third(X):
            _inner(X)
        """
    )
    assert [helper.name for helper in Module(Path("my_op.py"), text).kernels[2].helpers] == ["_inner", "_outer"]
