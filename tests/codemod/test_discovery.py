"""Discovery reads a repository the way importing it would register it."""

import os
import subprocess
import sys
import time
from pathlib import Path
from pathlib import PurePosixPath

import pytest

from tests.support import sample_operator
from tilewright.changes import apply
from tilewright.codemod import discover
from tilewright.codemod import discovery
from tilewright.codemod import package
from tilewright.codemod import register
from tilewright.codemod.registration import CUTILE_INIT

TINY_HOST = Path(__file__).parents[1] / "support" / "tiny_host"


@pytest.fixture(scope="module")
def tilegym_operators(pristine_tilegym_checkout):
    return {operator.name: operator for operator in discover(pristine_tilegym_checkout)}


def registered_by_importing(checkout: Path, *modules: str) -> set[tuple[str, str]]:
    # Without a GPU, TileGym's Triton backend breaks the import of all others.
    script = (
        f"import sys, importlib; sys.modules['triton'] = None; [importlib.import_module(m) for m in {modules}]\n"
        "from tilegym.backend.dispatcher import _REGISTRY\n"
        "for name, found in _REGISTRY.items():\n"
        "    for backend in {'cutile', 'default'} & found.keys(): print(name, backend)"
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env={**os.environ, "PYTHONPATH": str(checkout / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return {(name, backend) for name, backend in map(str.split, run.stdout.splitlines())}


def test_the_operators_are_those_that_importing_everything_registers(pristine_tilegym_checkout, tilegym_operators):
    suites = [f"tilegym.suites.{suite}.ops" for suite in ("liger", "unsloth", "flashinfer")]
    backends = [f"tilegym.suites.{suite}.cutile" for suite in ("liger", "unsloth", "flashinfer")]
    found = {(name, "default") for name, operator in tilegym_operators.items() if operator.stub}
    found |= {(name, "cutile") for name, operator in tilegym_operators.items() if operator.implementation("cutile")}
    assert found == registered_by_importing(pristine_tilegym_checkout, "tilegym", *suites, *backends)


def test_loaded_are_those_that_importing_tilegym_registers(pristine_tilegym_checkout, tilegym_operators):
    found = {
        name
        for name, operator in tilegym_operators.items()
        if (cutile := operator.implementation("cutile")) and cutile.loaded and ".suites." not in cutile.module
    }
    registered = registered_by_importing(pristine_tilegym_checkout, "tilegym.ops")
    assert found == {name for name, backend in registered if backend == "cutile"}


def test_a_hand_written_operator_has_its_places(tilegym_operators):
    softmax = tilegym_operators["softmax"]
    assert (softmax.stub.path, softmax.stub.function) == (PurePosixPath("src/tilegym/ops/ops.py"), "softmax")
    cutile = softmax.implementation("cutile")
    assert (cutile.path, cutile.function) == (PurePosixPath("src/tilegym/ops/cutile/softmax.py"), "softmax")
    assert softmax.tests == (PurePosixPath("tests/ops/test_softmax.py"),)
    assert softmax.benchmarks == (PurePosixPath("tests/benchmark/bench_softmax.py"),)


def test_the_line_is_that_of_the_function(pristine_tilegym_checkout, tilegym_operators):
    for operator in tilegym_operators.values():
        places = [place for place in (operator.stub, *operator.implementations) if place]
        for place in places:
            line = (pristine_tilegym_checkout / place.path).read_text().splitlines()[place.line - 1]
            assert line.startswith((f"def {place.function}(", f'register_impl("{operator.name}"')), line


def test_operators_of_one_name_in_two_suites_keep_their_tests_apart(tilegym_operators):
    assert tilegym_operators["liger.softmax"].tests == (PurePosixPath("tests/suites/liger/test_softmax.py"),)


def test_a_test_of_the_activation_module_is_found(tilegym_operators):
    assert tilegym_operators["gelu"].tests == (PurePosixPath("tests/ops/activation/test_gelu.py"),)


def test_an_implementation_that_is_registered_by_a_call_is_found(tilegym_operators):
    assert tilegym_operators["nvfp4_quantize"].implementation("cutile").function == "tile_nvfp4_quantize"


@pytest.mark.parametrize("placement", ["main", "experimental"])
def test_only_registration_makes_an_operator_loaded(tilegym_checkout, placement):
    folder = CUTILE_INIT.parent if placement == "main" else CUTILE_INIT.parent / "experimental"
    (tilegym_checkout / folder / "my_op.py").write_text(sample_operator.kernel("my_op"))
    [forgotten] = [operator for operator in discover(tilegym_checkout) if operator.name == "my_op"]
    assert forgotten.stub is None
    assert not forgotten.implementation("cutile").loaded

    apply(register(tilegym_checkout, "my_op", stub=sample_operator.stub("my_op"), placement=placement))
    [registered] = [operator for operator in discover(tilegym_checkout) if operator.name == "my_op"]
    assert registered.stub.module == "tilegym.ops.ops"
    assert registered.implementation("cutile").loaded


@pytest.mark.parametrize(
    "use",
    [
        "from tilegym.ops import softmax",
        "from tilegym.ops import softmax as tested",
        "import tilegym\ntilegym.ops.softmax(1)",
        "import tilegym.ops as ops\nops.softmax",
        "from tilegym import ops\ndef test():\n    return ops.softmax(1)",
        "import tilegym.ops\ncall(tilegym.ops.softmax, 1)",
    ],
)
def test_a_test_is_found_by_what_it_uses_and_not_by_its_name(tilegym_checkout, use):
    (tilegym_checkout / "tests" / "ops" / "test_other.py").write_text(use)
    [softmax] = [operator for operator in discover(tilegym_checkout) if operator.name == "softmax"]
    assert PurePosixPath("tests/ops/test_other.py") in softmax.tests


def test_a_module_that_does_not_parse_hides_nothing_else(tilegym_checkout):
    (tilegym_checkout / "src/tilegym/ops/cutile/bmm.py").write_text("def (")
    operators = {operator.name: operator for operator in discover(tilegym_checkout)}
    assert operators["bmm"].implementation("cutile") is None
    assert operators["matmul"].implementation("cutile").loaded


@pytest.mark.parametrize("package", [None, "tiny_ops"])
def test_a_standalone_host(package):
    [operator] = discover(TINY_HOST, package)
    assert operator.name == "scale_add"
    assert operator.stub.path == PurePosixPath("tiny_ops/scale_add/interface.py")
    assert operator.implementation("cutile").path == PurePosixPath("tiny_ops/scale_add/cutile.py")
    assert operator.implementation("cutile").loaded
    assert operator.tests == (PurePosixPath("tests/ops/test_scale_add.py"),)
    assert operator.benchmarks == (PurePosixPath("tests/benchmark/bench_scale_add.py"),)


def test_a_standalone_host_that_finds_its_folders_by_itself(tmp_path):
    folder = tmp_path / "my_ops" / "twice"
    folder.mkdir(parents=True)
    (tmp_path / "my_ops" / "__init__.py").write_text("from pkgutil import iter_modules\nlist(iter_modules(__path__))\n")
    (folder / "__init__.py").write_text("from .interface import twice\nif True:\n    from . import cutile as cutile\n")
    (folder / "interface.py").write_text('@dispatch("twice")\ndef twice(x):\n    raise NotImplementedError\n')
    (folder / "cutile.py").write_text('@register_impl("twice", backend="cutile")\ndef twice(x):\n    return x + x\n')
    [operator] = discover(tmp_path)
    assert operator.implementation("cutile").loaded


def test_an_empty_folder_has_no_operators(tmp_path):
    assert discover(tmp_path) == []


def test_discovery_and_registration_are_fast(pristine_tilegym_checkout):
    stub = sample_operator.stub("my_op")
    assert processor_seconds(lambda: discover(pristine_tilegym_checkout)) < 1.5
    assert processor_seconds(lambda: register(pristine_tilegym_checkout, "my_op", stub=stub)) < 0.3


def processor_seconds(call) -> float:
    """The best of three, as other processes slow this one down."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


def test_only_tests_that_name_the_package_are_parsed(tmp_path, monkeypatch):
    (tmp_path / "my_ops").mkdir()
    (tmp_path / "my_ops/__init__.py").write_text("")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_ours.py").write_text("from my_ops import scale\n")
    (tmp_path / "tests/test_other.py").write_text("import json\n")
    parsed = []
    monkeypatch.setattr(discovery, "parse", lambda source: parsed.append(source) or package.parse(source))
    discover(tmp_path, "my_ops")
    assert parsed == [b"from my_ops import scale\n"]
