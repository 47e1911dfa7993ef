"""What registration does not recognise it refuses, says why, and leaves alone."""

import shutil

import pytest

from tests.support import sample_operator
from tilewright.codemod import register
from tilewright.codemod import unregister
from tilewright.codemod.registration import CUTILE_INIT
from tilewright.codemod.registration import OPS
from tilewright.errors import RegistrationError

GUARD = 'if is_backend_available("cutile"):'


def refuse(root, op="my_op", **options):
    with pytest.raises(RegistrationError) as caught:
        register(root, op, **{"stub": sample_operator.stub(op), **options})
    error = caught.value
    assert error.what
    assert error.expected
    assert error.hint
    assert str(error).count("\n") == 2
    return error.what


@pytest.mark.parametrize(
    ("path", "old", "new", "what"),
    [
        (OPS, "def softmax(", "def softmax(:", r"ops\.py does not parse \(line \d+, column \d+\)"),
        (
            OPS,
            "import torch",
            "<<<<<<< ours\nimport torch\n=======\nimport torch\n>>>>>>> theirs",
            "merge-conflict markers",
        ),
        (OPS, "import torch", "\fimport torch", "white space that would be lost"),
        (
            OPS,
            "import torch",
            "import torch\n\n\ndef my_op(x):\n    return x",
            r"defines my_op already: `def my_op\(x\):`",
        ),
        (
            OPS,
            "import torch",
            "import torch\nfrom numpy import my_op",
            "defines my_op already: `from numpy import my_op`",
        ),
        (OPS, "import torch", "import torch\nmy_op = None", "defines my_op already: `my_op = None`"),
        (OPS, "from tilegym.backend import dispatch\n", "", "does not import dispatch"),
        (CUTILE_INIT, GUARD, "if True:", "a shape that tilewright does not know"),
        (CUTILE_INIT, GUARD, 'if not is_backend_available("cutile"):', "a shape that tilewright does not know"),
        (CUTILE_INIT, GUARD, 'if is_backend_available("triton"):', "a shape that tilewright does not know"),
        (CUTILE_INIT, "    __all__ = [", "    names = [", "a shape that tilewright does not know"),
        (CUTILE_INIT, "    __all__ = [", "    __all__ = sorted(names) + [", "a shape that tilewright does not know"),
        (
            CUTILE_INIT,
            "    from . import bmm\n",
            "    from . import bmm as my_op\n",
            "binds my_op already: `from . import bmm as my_op`",
        ),
        (
            CUTILE_INIT,
            "    from . import bmm\n",
            "    from .bmm import (bmm, my_op)\n",
            r"binds my_op already: `from .bmm import \(bmm, my_op\)`",
        ),
        (CUTILE_INIT, GUARD, f"from . import my_op\n\n{GUARD}", "binds my_op already"),
        (CUTILE_INIT, GUARD, f"def my_op():\n    pass\n\n\n{GUARD}", r"binds my_op already: `def my_op\(\):`"),
    ],
)
def test_a_shape_that_is_not_tilegyms(shared_files, path, old, new, what):
    file = shared_files / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    assert refuse(shared_files).startswith(str(path))
    with pytest.raises(RegistrationError, match=what):
        register(shared_files, "my_op", stub=sample_operator.stub("my_op"))


@pytest.mark.parametrize("path", [OPS, CUTILE_INIT])
@pytest.mark.parametrize(
    "content", [b"\xff", b"x = 1\r", "x = '\xe4'".encode("latin-1")], ids=["bytes", "cr", "latin1"]
)
def test_a_file_that_cannot_be_read_back(shared_files, path, content):
    (shared_files / path).write_bytes(content)
    assert refuse(shared_files).startswith(str(path))
    with pytest.raises(RegistrationError):
        unregister(shared_files, "my_op")


@pytest.mark.parametrize("path", [OPS, CUTILE_INIT])
def test_a_missing_file(shared_files, path):
    (shared_files / path).unlink()
    assert refuse(shared_files) == f"{path} cannot be read: No such file or directory"


def test_experimental_placement_without_the_folder(shared_files):
    shutil.rmtree(shared_files / CUTILE_INIT.parent / "experimental")
    assert "experimental is not a package" in refuse(shared_files, placement="experimental")
    assert register(shared_files, "my_op", stub=sample_operator.stub("my_op"))


@pytest.mark.parametrize(
    ("op", "what"),
    [
        ("gelu", "is dispatched in src/tilegym/ops/activation.py"),
        ("fmha_decode", "has a cuTile implementation in src/tilegym/ops/cutile/flash_decode.py"),
        ("fused_mlp", "is the name of src/tilegym/ops/fused_mlp.py"),
        ("moe", "is the name of src/tilegym/ops/cutile/moe.py"),
        ("activation", "is imported in src/tilegym/ops/__init__.py"),
        ("fmha_interface", "is imported in src/tilegym/ops/__init__.py"),
        ("utils", "is the name of src/tilegym/ops/cutile/utils.py"),
        ("experimental", "is the name of src/tilegym/ops/cutile/experimental/__init__.py"),
        ("sparse_mla", "has a cuTile implementation in src/tilegym/ops/cutile/experimental/sparse_mla.py"),
        ("dispatch", "src/tilegym/ops/ops.py defines dispatch already"),
        ("is_backend_available", "is imported in src/tilegym/ops/__init__.py"),
    ],
)
def test_a_name_that_means_something_else(pristine_tilegym_checkout, op, what):
    assert what in refuse(pristine_tilegym_checkout, op)


@pytest.mark.parametrize(
    "stub",
    [
        "def my_op(x):\n    pass\n",
        '@dispatch("other")\ndef my_op(x):\n    pass\n',
        '@dispatch("my_op")\ndef other(x):\n    pass\n',
        '@dispatch("my_op")\ndef my_op(x):\n    pass\n\n\ny = 1\n',
        '@dispatch("my_op")\ndef my_op(x:\n',
    ],
)
def test_a_stub_that_is_not_one_dispatch_function(shared_files, stub):
    assert "the stub of my_op" in refuse(shared_files, stub=stub)


def test_a_block_without_relative_imports(shared_files):
    file = shared_files / CUTILE_INIT
    lines = [line for line in file.read_text().splitlines(keepends=True) if not line.startswith("    from .")]
    file.write_text("".join(lines))
    assert "a shape that tilewright does not know" in refuse(shared_files)


def test_unregister_refuses_what_it_would_leave_behind(shared_files):
    file = shared_files / CUTILE_INIT
    file.write_text(
        file.read_text().replace("import softmax\n    from .splitk", "import online, softmax\n    from .splitk")
    )
    with pytest.raises(RegistrationError, match=r"binds softmax already: `from .softmax import online, softmax`"):
        unregister(shared_files, "softmax")
