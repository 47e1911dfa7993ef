"""Registration in a real checkout: what it inserts, where, and that TileGym agrees."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import sample_operator
from tests.support.tilegym_checkout import git
from tilewright.changes import apply
from tilewright.codemod import register
from tilewright.codemod import unregister
from tilewright.codemod.registration import CUTILE_INIT
from tilewright.codemod.registration import OPS
from tilewright.errors import RegistrationError

# Sorted first, last, between others, before a comment, by number, and around `.experimental`.
NAMES = ["aardvark", "conv10d", "conv2d", "exp", "experimental2", "mhc_2", "softmax2", "transposed", "zzz"]


def added_lines(checkout: Path) -> list[str]:
    assert not [line for line in git(checkout, "diff", "--numstat").splitlines() if line.split("\t")[1] != "0"]
    lines = git(checkout, "diff", "--unified=0").splitlines()
    return [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++")]


def run_ruff(checkout: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, "--no-cache", str(OPS), str(CUTILE_INIT)]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True).stdout


def test_register_inserts_the_stub_two_imports_and_the_export(tilegym_checkout):
    apply(register(tilegym_checkout, "my_op", stub=sample_operator.stub("my_op")))
    lines = added_lines(tilegym_checkout)
    stub = sample_operator.stub("my_op").splitlines()
    assert sorted(line for line in lines if line not in stub) == [
        '        "my_op",',
        "    from . import my_op",
        "    from .my_op import my_op",
    ]
    assert [line for line in lines if line in stub and line] == [line for line in stub if line]


def test_register_puts_the_stub_at_the_end_of_the_nn_operations(shared_files):
    apply(register(shared_files, "my_op", stub=sample_operator.stub("my_op")))
    before, after = (shared_files / OPS).read_text().split(sample_operator.stub("my_op"))
    assert before.endswith('get_current_backend()}")\n\n\n')
    assert after.startswith("\n\n# ====")
    assert after.splitlines()[3] == "# Linear Algebra Operations"


def test_register_puts_the_stub_at_the_end_of_a_file_without_sections(tilegym_checkout):
    ops = tilegym_checkout / OPS
    lines = [line for line in ops.read_text().splitlines(keepends=True) if not line.startswith("# ====")]
    ops.write_text("".join(lines))
    apply(register(tilegym_checkout, "my_op", stub=sample_operator.stub("my_op")))
    assert ops.read_text().endswith("\n\n\n" + sample_operator.stub("my_op"))
    assert run_ruff(tilegym_checkout, "format", "--diff") == ""


def test_register_in_experimental_imports_from_there(tilegym_checkout):
    apply(register(tilegym_checkout, "my_op", stub=sample_operator.stub("my_op"), placement="experimental"))
    assert [line for line in added_lines(tilegym_checkout) if "import" in line] == [
        "    from .experimental import my_op",
        "    from .experimental.my_op import my_op",
    ]


@pytest.mark.parametrize("placement", ["main", "experimental"])
def test_register_twice_changes_nothing(shared_files, placement):
    arguments = {"stub": sample_operator.stub("my_op"), "placement": placement}
    apply(register(shared_files, "my_op", **arguments))
    assert not register(shared_files, "my_op", **arguments)


def test_register_leaves_an_edited_stub_alone(shared_files):
    apply(register(shared_files, "my_op", stub=sample_operator.stub("my_op")))
    ops = shared_files / OPS
    ops.write_text(ops.read_text().replace("Copy a tensor of one dimension.", "Copy it."))
    assert not register(shared_files, "my_op", stub=sample_operator.stub("my_op"))


@pytest.mark.parametrize("lost", [pieces for n in (1, 2, 3) for pieces in itertools.combinations(range(4), n)], ids=str)
def test_register_completes_a_half_registered_operator(shared_files, lost):
    stub = sample_operator.stub("my_op")
    pieces = ["\n\n" + stub, "    from . import my_op\n", "    from .my_op import my_op\n", '        "my_op",\n']
    apply(register(shared_files, "my_op", stub=stub))
    files = [shared_files / OPS, shared_files / CUTILE_INIT]
    complete = [file.read_bytes() for file in files]
    for index in lost:
        for file in files:
            file.write_text(file.read_text().replace(pieces[index], ""))
    assert [file.read_bytes() for file in files] != complete
    apply(register(shared_files, "my_op", stub=stub))
    assert [file.read_bytes() for file in files] == complete


@pytest.mark.parametrize("placement", ["main", "experimental"])
def test_unregister_restores_every_byte(tilegym_checkout, placement):
    apply(register(tilegym_checkout, "my_op", stub=sample_operator.stub("my_op"), placement=placement))
    apply(unregister(tilegym_checkout, "my_op"))
    assert git(tilegym_checkout, "status", "--porcelain", "--", "src") == ""


def test_unregister_has_nothing_to_do_for_an_operator_that_is_not_there(pristine_tilegym_checkout):
    assert not unregister(pristine_tilegym_checkout, "my_op")


def test_unregister_of_a_hand_written_operator_takes_out_its_stub_and_lines(tilegym_checkout):
    apply(unregister(tilegym_checkout, "softmax"))
    removed = [line for line in git(tilegym_checkout, "diff", "--unified=0").splitlines() if line.startswith("-")]
    assert {"-    from . import softmax", "-    from .softmax import softmax", '-        "softmax",'} <= {*removed}
    assert run_ruff(tilegym_checkout, "format", "--diff") == ""


@pytest.mark.parametrize("placement", ["main", "experimental"])
def test_ruff_with_tilegyms_settings_finds_nothing(tilegym_checkout, placement):
    for name in sorted(NAMES, key=len):
        apply(
            register(
                tilegym_checkout, name, stub=sample_operator.stub(name, "int | Sequence[int]"), placement=placement
            )
        )
    assert run_ruff(tilegym_checkout, "check", "--select", "I").strip() == "All checks passed!"
    assert run_ruff(tilegym_checkout, "format", "--diff") == ""
    assert (
        run_ruff(tilegym_checkout, "check", "--select", "F").count(" F821 ") == 0
    )  # every name that a stub uses is bound


@pytest.mark.parametrize("placement", ["main", "experimental"])
def test_tilegym_loads_and_lists_the_operator(tilegym_checkout, placement):
    folder = CUTILE_INIT.parent if placement == "main" else CUTILE_INIT.parent / "experimental"
    (tilegym_checkout / folder / "my_op.py").write_text(sample_operator.kernel("my_op"))
    apply(register(tilegym_checkout, "my_op", stub=sample_operator.stub("my_op"), placement=placement))
    # Without a GPU, TileGym's Triton backend breaks the import of all others.
    script = (
        "import sys; sys.modules['triton'] = None\n"
        "from tilegym.ops import my_op\n"
        "import tilegym\n"
        "backends = sorted(tilegym.backend.get_available_backends_for_op('my_op'))\n"
        "exported = 'my_op' in tilegym.ops.cutile.__all__\n"
        "print(backends, tilegym.ops.cutile.my_op.__module__, exported, tilegym.__file__, sep='\\n')"
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env={**os.environ, "PYTHONPATH": str(tilegym_checkout / "src")},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "['cutile', 'default']",
        str(folder / "my_op").removeprefix("src/").replace("/", "."),
        "True",
        f"{tilegym_checkout}/src/tilegym/__init__.py",
    ]


def test_register_refuses_the_other_placement(shared_files):
    apply(register(shared_files, "my_op", stub=sample_operator.stub("my_op")))
    with pytest.raises(RegistrationError, match=r"binds my_op already: `from \. import my_op`"):
        register(shared_files, "my_op", stub=sample_operator.stub("my_op"), placement="experimental")
