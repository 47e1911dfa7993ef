"""Whatever is registered and taken out, in any order and in any formatting, only the rest is left."""

import keyword
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from tests.support import sample_operator
from tilewright.changes import apply
from tilewright.codemod import register
from tilewright.codemod import unregister
from tilewright.codemod.registration import CUTILE_INIT
from tilewright.codemod.registration import OPS

STANDARD_IMPORTS = [
    "",
    "from typing import Any\n\n",
    "import math\nfrom typing import Any\nfrom typing import Sequence\n\n",  # the last one is not used
]
BANNER = "# =====================\n# {}\n# =====================\n\n\n"
SECTIONS = [
    "",
    BANNER.format("NN Operations"),
    BANNER.format("NN Operations")
    + "@dispatch('inside')\ndef inside(x):  # one\n    pass\n\n\n"
    + BANNER.format("Linear Algebra Operations"),
]
ENDS = ["", "\n", "\n\n", "\n# the end — truly\n", "  # comment"]
IMPORTS = [
    "    from . import first\n",
    "    from .first import first\n",
    "    # why\n    from . import first\n    from . import (\n        last,\n    )\n\n"
    "    # functions\n    from .first import first  # x\n",
    "    from . import last\n    from . import first\n"
    "    from .experimental import last as best\n    from .zz import *\n",
]
EXPORTS = [
    "[]",
    "[\n    ]",
    '["first"]',
    '["first", "last"]',
    '["first",]',
    '[\n        "first",\n        # group\n        "last",\n    ]',
    '[\n        "first",  # one\n        "last",  # two\n        # none\n    ]',
    '[\n        "first",\n        "last"\n    ]',
    '[\n        "first",\n        "last"]',
    '["first",\n               "last"]',
    '[\n        "first", "last",\n    ]',
]
TAKEN = {"first", "last", "inside", "best", "experimental", "ops", "cutile", *keyword.kwlist}


@st.composite
def shared_files(draw: st.DrawFn) -> tuple[bytes, bytes]:
    ops = (
        f'"""Operators — all of them."""\n\n{draw(st.sampled_from(STANDARD_IMPORTS))}import torch\n\n'
        "from tilegym.backend import dispatch\nfrom tilegym.backend import get_current_backend\n\n"
        f"{draw(st.sampled_from(SECTIONS))}@dispatch('last')\ndef last(x):\n    pass{draw(st.sampled_from(ENDS))}"
    )
    init = (
        "from tilegym.backend import is_backend_available\n\n"
        f'if is_backend_available("cutile"):\n{draw(st.sampled_from(IMPORTS))}\n'
        f"    __all__ = {draw(st.sampled_from(EXPORTS))}\nelse:\n    __all__ = []{draw(st.sampled_from(ENDS))}"
    )
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig"]))
    return ops.replace("\n", newline).encode(encoding), init.replace("\n", newline).encode(encoding)


operators = st.builds(
    lambda names, placements, dims: list(zip(names, placements, dims, strict=False)),
    st.lists(
        st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True).filter(lambda name: name not in TAKEN),
        unique=True,
        min_size=1,
        max_size=5,
    ),
    st.lists(st.sampled_from(["main", "experimental"]), min_size=5, max_size=5),
    st.lists(st.sampled_from(["int", "Sequence[int]", "Optional[int]"]), min_size=5, max_size=5),
)


def checkout(folder: str, files: tuple[bytes, bytes]) -> Path:
    root = Path(folder)
    (root / CUTILE_INIT.parent / "experimental").mkdir(parents=True)
    (root / CUTILE_INIT.parent / "experimental" / "__init__.py").touch()
    (root / OPS).write_bytes(files[0])
    (root / CUTILE_INIT).write_bytes(files[1])
    return root


def content(root: Path) -> tuple[bytes, bytes]:
    return (root / OPS).read_bytes(), (root / CUTILE_INIT).read_bytes()


def add(root: Path, operators: Sequence[tuple[str, str, str]]) -> None:
    for name, placement, dim in operators:
        apply(register(root, name, stub=sample_operator.stub(name, dim), placement=placement))
        assert not register(root, name, stub=sample_operator.stub(name, dim), placement=placement)


@settings(deadline=None, max_examples=60)
@given(files=shared_files(), operators=operators, data=st.data())
def test_removing_in_any_order_restores_every_byte(files, operators, data):
    with tempfile.TemporaryDirectory() as folder:
        root = checkout(folder, files)
        add(root, operators)
        for name, *_ in data.draw(st.permutations(operators)):
            apply(unregister(root, name))
        assert content(root) == files


@settings(deadline=None, max_examples=60)
@given(files=shared_files(), operators=operators, data=st.data())
def test_what_is_left_looks_as_if_the_removed_had_never_been_there(files, operators, data):
    removed = data.draw(st.lists(st.sampled_from(operators), unique=True))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as expected_folder:
        root = checkout(folder, files)
        add(root, operators)
        for name, *_ in removed:
            apply(unregister(root, name))
        expected = checkout(expected_folder, files)
        add(expected, [operator for operator in operators if operator not in removed])
        assert content(root) == content(expected)
