import pytest

pytest.importorskip("torch")
pytest.importorskip("cuda.tile")

import os
import sys
from dataclasses import replace

from tests.support.hosts import edit
from tests.support.hosts import scale_add
from tilewright.aot import cache as caching
from tilewright.aot import compile as compiling
from tilewright.aot.cache import Cache
from tilewright.aot.cache import fingerprint
from tilewright.aot.cache import user_cache
from tilewright.aot.compile import compile_operator
from tilewright.cutile.targets import select
from tilewright.cutile.toolchain import Toolchain
from tilewright.model.kernel import CaptureFailure
from tilewright.model.kernel import Compilation
from tilewright.model.kernel import CompiledKernel
from tilewright.model.kernel import Resources

REQUEST = {"targets": ["sm_90"], "dtypes": []}
KERNEL = CompiledKernel(
    kernel="k",
    arch="sm_90",
    dtype="float32",
    signature="aligned",
    symbol="k_1",
    seconds=0.5,
    resources=Resources(registers=32, spilled_bytes=0, shared_bytes=0, code_bytes=128),
)


@pytest.fixture
def operator(tmp_path):
    return scale_add(tmp_path)


@pytest.fixture
def toolchain(tmp_path):
    return Toolchain(path=tmp_path / "tileiras", version="13.4.92")


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "results")


def test_what_is_kept_is_found_with_its_resources(cache):
    cache.keep("key", Compilation(op="k", kernels=(KERNEL,), unreached=("other",), seconds=3.0))
    assert cache.find("key") == Compilation(op="k", kernels=(KERNEL,), unreached=("other",), cached=True)


def test_another_key_finds_nothing(cache):
    cache.keep("key", Compilation(op="k", kernels=(KERNEL,)))
    assert cache.find("other") is None


@pytest.mark.parametrize(
    "compilation",
    [
        Compilation(op="k"),
        Compilation(op="k", kernels=(KERNEL, replace(KERNEL, resources=None, error="no answer in 60 s"))),
        Compilation(op="k", kernels=(KERNEL,), failures=(CaptureFailure(arch="sm_90", dtype="float16", error="x"),)),
    ],
    ids=["nothing compiled", "a kernel failed", "a host function failed"],
)
def test_only_a_compilation_in_which_nothing_failed_is_kept(cache, compilation):
    cache.keep("key", compilation)
    assert cache.find("key") is None


def test_a_compilation_that_is_refused_for_an_architecture_is_kept_with_the_reason(cache):
    refusal = CaptureFailure(arch="sm_80", dtype="float8_e4m3fn", error="needs 9.0", refused=True)
    cache.keep("key", Compilation(op="k", kernels=(KERNEL,), failures=(refusal,)))
    assert cache.find("key") == Compilation(op="k", kernels=(KERNEL,), failures=(refusal,), cached=True)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"op": "k", "kernels": [{"kernel": "k"}]}', "\0"])
def test_an_entry_that_is_damaged_does_not_exist(cache, tmp_path, content):
    cache.keep("key", Compilation(op="k", kernels=(KERNEL,)))
    (tmp_path / "results" / "key.json").write_text(content)
    assert cache.find("key") is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file")
    cache.keep("key", Compilation(op="k", kernels=(KERNEL,)))
    assert cache.find("key") is None


def test_the_oldest_entries_make_room(cache, tmp_path, monkeypatch):
    monkeypatch.setattr(caching, "_ENTRIES", 2)
    for number, key in enumerate(("first", "second", "third")):
        cache.keep(key, Compilation(op=key, kernels=(KERNEL,)))
        os.utime(tmp_path / "results" / f"{key}.json", (number, number))
    cache.keep("fourth", Compilation(op="fourth", kernels=(KERNEL,)))
    assert {path.stem for path in (tmp_path / "results").iterdir()} == {"third", "fourth"}


def test_the_environment_names_its_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "named"))
    user_cache().keep("key", Compilation(op="k", kernels=(KERNEL,)))
    assert [path.name for path in (tmp_path / "named").iterdir()] == ["key.json"]


@pytest.mark.parametrize("value", ["", "0", "off", "None"])
def test_the_environment_turns_it_off(monkeypatch, value):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", value)
    assert user_cache() is None


def test_the_same_files_have_the_same_fingerprint(operator, toolchain):
    assert fingerprint(operator, REQUEST, toolchain) == fingerprint(operator, REQUEST, toolchain)


@pytest.mark.parametrize("file", ["stub", "kernel", "test"])
def test_an_edit_changes_the_fingerprint(operator, toolchain, file):
    before = fingerprint(operator, REQUEST, toolchain)
    path = operator.path(getattr(operator, file))
    path.write_text(path.read_text() + "# a comment moves the lines that the compiler records\n")
    assert fingerprint(operator, REQUEST, toolchain) != before


def test_request_compiler_and_options_change_the_fingerprint(operator, toolchain, monkeypatch):
    found = {fingerprint(operator, REQUEST, toolchain)}
    found.add(fingerprint(operator, {**REQUEST, "targets": ["sm_100"]}, toolchain))
    found.add(fingerprint(operator, REQUEST, replace(toolchain, version="13.3.0")))
    monkeypatch.setenv("CUDA_TILE_ENABLE_CRASH_DUMP", "1")
    found.add(fingerprint(operator, REQUEST, toolchain))
    assert len(found) == 4


@pytest.mark.parametrize("distribution", ["tilewright", "cuda-tile", "torch", "tilegym"])
def test_another_version_of_what_compiles_changes_the_fingerprint(operator, toolchain, monkeypatch, distribution):
    found = set()
    for number in ("1.0", "1.1"):
        monkeypatch.setattr(caching, "version", lambda name, number=number: number if name == distribution else "0")
        found.add(fingerprint(operator, REQUEST, toolchain))
    assert len(found) == 2


def test_another_python_or_place_of_the_compiler_changes_the_fingerprint(operator, toolchain, monkeypatch, tmp_path):
    found = {fingerprint(operator, REQUEST, toolchain)}
    found.add(fingerprint(operator, REQUEST, replace(toolchain, path=tmp_path / "other" / "tileiras")))
    monkeypatch.setattr(sys, "version", "3.99.0")
    found.add(fingerprint(operator, REQUEST, toolchain))
    assert len(found) == 3


def test_an_edit_of_what_compiles_changes_the_fingerprint(operator, toolchain, monkeypatch):
    before = fingerprint(operator, REQUEST, toolchain)
    monkeypatch.setattr(caching, "_own_sources", lambda: "edited")
    assert fingerprint(operator, REQUEST, toolchain) != before


def test_the_same_files_elsewhere_have_another_fingerprint(toolchain, tmp_path):
    operators = [scale_add(tmp_path / name) for name in ("one", "other")]
    assert len({fingerprint(operator, REQUEST, toolchain) for operator in operators}) == 2


def test_an_operator_that_cannot_be_read_has_none(operator, toolchain):
    edit(operator, operator.kernel, "@ct.kernel", "@ct.kernel(")
    assert fingerprint(operator, REQUEST, toolchain) is None


def test_the_second_compilation_starts_no_compiler(operator, cache, monkeypatch):
    first = compile_operator(operator, targets=select("sm_90"), dtypes=["float32"], cache=cache)
    assert not first.cached
    assert not first.errors
    monkeypatch.setattr(compiling, "_events", lambda *_: pytest.fail("the compiler was started"))
    second = compile_operator(operator, targets=select("sm_90"), dtypes=["float32"], cache=cache)
    assert second == replace(first, seconds=0.0, cached=True)


def test_an_edited_kernel_is_compiled_again(operator, cache):
    compile_operator(operator, targets=select("sm_90"), dtypes=["float32"], cache=cache)
    edit(operator, operator.kernel, "@ct.kernel", "@ct.kernel(num_ctas=1)")
    assert not compile_operator(operator, targets=select("sm_90"), dtypes=["float32"], cache=cache).cached
