import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("cuda.tile")

from tests.support.hosts import edit
from tests.support.hosts import scale_add
from tilewright.aot.compile import compile_operator
from tilewright.cutile.targets import select
from tilewright.errors import MissingError
from tilewright.errors import UsageError

BODY = "    i = ct.bid(0)\n    t = ct.load(Dout"


@pytest.fixture
def operator(tmp_path):
    return scale_add(tmp_path)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """A compiler cache of our own: neither filled by nor filling the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_TILE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def compiled(operator, arch="sm_90", **options):
    return compile_operator(operator, targets=select(arch), **options)


@pytest.fixture(scope="module")
def plain(tmp_path_factory, cache):
    """The operator as it is, compiled for two architectures, and what was said about progress."""
    said = []
    operator = scale_add(tmp_path_factory.mktemp("plain"))
    return compiled(operator, "sm_89,sm_90", progress=lambda done, total: said.append((done, total))), said


def test_each_kernel_dtype_and_kind_of_signature_is_compiled_once(plain):
    result, _ = plain
    assert not result.errors
    assert [(k.kernel, k.arch, k.dtype, k.signature) for k in result.kernels] == [
        (kernel, arch, dtype, signature)
        for kernel in ("_scale_add_bwd_kernel", "_scale_add_kernel")
        for arch in ("sm_89", "sm_90")
        for dtype in ("float16", "float32")
        for signature in ("aligned", "unaligned")
    ]


def test_resources_are_read(plain):
    result, _ = plain
    assert all(k.resources and k.resources.registers > 0 for k in result.kernels)


def test_host_function_chooses_for_the_architecture_compiled_for(plain):
    # The last constant in the symbol is the tile size: 1024 before sm_90, 2048 from there on.
    result, _ = plain
    assert {(k.arch, k.symbol.rpartition("_")[2]) for k in result.kernels} == {("sm_89", "I1024"), ("sm_90", "I2048")}


def test_hints_are_compiled_with(plain):
    result, _ = plain
    assert {(k.kernel, k.hints) for k in result.kernels} == {
        ("_scale_add_kernel", "occupancy=4"),
        ("_scale_add_bwd_kernel", ""),
    }


def test_progress_goes_from_nothing_to_all(plain):
    _, said = plain
    assert (said[0], said[-1]) == ((0, 4), (4, 4))


def test_what_the_compiler_refuses_is_a_result_with_its_place(operator):
    edit(operator, operator.kernel, BODY, BODY.replace("ct.bid(0)", "ct.arange(0, 1024)"))
    result = compiled(operator, dtypes=["float32"])
    failed = [k for k in result.kernels if k.error]
    assert {k.kernel for k in failed} == {"_scale_add_bwd_kernel"}
    assert "arange(): too many positional arguments" in failed[0].error
    assert "cutile.py:21" in failed[0].error
    assert len(result.kernels) == 4
    assert len(result.errors) == 2


def test_crash_while_compiling_is_a_result_and_the_rest_goes_on(operator):
    edit(operator, operator.kernel, "import torch\n", "import torch\nimport os\n")
    edit(operator, operator.kernel, BODY, "    ct.static_eval(os.kill(os.getpid(), 11))\n" + BODY)
    result = compiled(operator, dtypes=["float32"])
    assert [(k.kernel, k.error) for k in result.kernels] == [
        ("_scale_add_bwd_kernel", "the process was ended by SIGSEGV"),
        ("_scale_add_bwd_kernel", "the process was ended by SIGSEGV"),
        ("_scale_add_kernel", ""),
        ("_scale_add_kernel", ""),
    ]


def test_compilation_without_end_is_stopped(operator):
    edit(operator, operator.kernel, "import torch\n", "import torch\nimport time\n")
    edit(operator, operator.kernel, BODY, "    ct.static_eval(time.sleep(600))\n" + BODY)
    start = time.monotonic()
    result = compiled(operator, dtypes=["float32"], time_limit=1)
    assert time.monotonic() - start < 60
    assert [k.error for k in result.kernels] == ["no answer in 1 s", "no answer in 1 s", "", ""]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=str)
def test_nothing_goes_on_when_the_command_is_ended(operator, how):
    edit(operator, operator.kernel, "import torch\n", "import torch\nimport os, time, pathlib\n")
    wait = "(pathlib.Path('pid').write_text(str(os.getpid())), time.sleep(600))[0]"
    edit(operator, operator.kernel, BODY, f"    ct.static_eval({wait})\n" + BODY)
    command = [sys.executable, "-m", "tilewright", "compile", "scale_add", "--arch", "sm_90"]
    process = subprocess.Popen(
        command,
        cwd=operator.host.root,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored where the tests run in the background
    )
    started = operator.host.root / "pid"
    assert within(60, started.is_file)
    process.send_signal(how)
    process.wait(timeout=20)
    assert within(20, lambda: not Path("/proc", started.read_text()).exists())


def within(seconds, condition):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return condition()


def test_host_function_that_fails_is_reported_with_what_it_raised(operator):
    edit(operator, operator.kernel, "out = torch.empty_like(x) if", "x.sum().item()\n    out = torch.empty_like(x) if")
    result = compiled(operator)
    assert [(f.arch, f.dtype) for f in result.failures] == [("sm_90", "float16"), ("sm_90", "float32")]
    assert "item()" in result.errors[0]


REFUSES = """if torch.cuda.get_device_capability() < (9, 0):
        raise NotImplementedError("needs compute capability 9.0")
    out = torch.empty_like(x) if"""


def test_an_architecture_that_the_host_function_refuses_is_no_failure(operator):
    edit(operator, operator.kernel, "out = torch.empty_like(x) if", REFUSES)
    result = compiled(operator, "sm_89,sm_90")
    assert result.errors == ()
    assert {k.arch for k in result.kernels} == {"sm_90"}
    assert tuple(map(str, result.refused)) == (
        "sm_89 float16: needs compute capability 9.0",
        "sm_89 float32: needs compute capability 9.0",
    )


def test_that_every_architecture_is_refused_is_a_failure(operator):
    edit(operator, operator.kernel, "out = torch.empty_like(x) if", REFUSES)
    result = compiled(operator, "sm_80,sm_89", dtypes=["float32"])
    assert result.errors == tuple(f"{arch} float32: needs compute capability 9.0" for arch in ("sm_80", "sm_89"))
    assert (result.refused, result.unreached) == ((), ())


def test_crash_of_the_host_function_is_reported(operator):
    edit(
        operator,
        operator.kernel,
        "out = torch.empty_like(x) if",
        "import os; os.abort()\n    out = torch.empty_like(x) if",
    )
    assert [f.error for f in compiled(operator, dtypes=["float32"]).failures] == ["the process was ended by SIGABRT"]


def test_module_that_cannot_be_imported_is_reported(operator):
    edit(operator, operator.kernel, "import torch\n", "import torch\nimport no_such_module\n")
    place = f"{operator.path(operator.kernel)}:5"
    assert compiled(operator).errors == (f"ModuleNotFoundError: No module named 'no_such_module' ({place})",)


def test_module_that_crashes_when_imported_is_reported(operator):
    edit(operator, operator.kernel, "import torch\n", "import torch\nimport os\n\nos.abort()\n")
    assert compiled(operator).errors == ("the compiling process was ended by SIGABRT",)


def test_kernel_that_no_shape_reaches_is_reported(operator):
    edit(operator, operator.kernel, "_ScaleAdd.apply(x, y, alpha)", "_launch(_scale_add_kernel, x, (x, x, x, alpha))")
    result = compiled(operator)
    assert result.unreached == ("_scale_add_bwd_kernel",)
    assert "_scale_add_bwd_kernel" in result.errors[-1]


def test_what_modules_print_does_not_disturb(operator):
    edit(operator, operator.kernel, "import torch\n", 'import torch\n\nprint(\'{"event": "unit"}\')\n')
    assert not compiled(operator).errors


def test_unknown_dtype_is_refused_with_the_known_ones(operator):
    with pytest.raises(UsageError, match=r"do not cover float8\nexpected one or more of float32, float16"):
        compiled(operator, dtypes=["float8"])


def test_missing_compiler_is_said(operator, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingError, match="pip install"):
        compiled(operator)


@pytest.mark.parametrize("statement", ["while True: pass", "import time; time.sleep(3600)"])
def test_an_import_that_takes_forever_is_ended(operator, monkeypatch, statement):
    monkeypatch.setattr("tilewright.aot.compile.IMPORT_LIMIT", 4)
    edit(operator, operator.kernel, "import torch\n", f"import torch\n{statement}\n")
    assert [failure.error for failure in compiled(operator).failures] == ["importing it took longer than 4 s"]


def test_an_import_that_ends_the_process_is_a_result(operator):
    edit(operator, operator.kernel, "import torch\n", "import torch\nraise SystemExit(0)\n")
    (failure,) = compiled(operator).failures
    assert failure.error.startswith("SystemExit: 0 (")
    assert f"{operator.kernel}:" in failure.error


def test_a_host_function_that_ends_the_process_is_a_result(operator):
    edit(operator, operator.kernel, "    if kwargs:\n", "    raise SystemExit(0)\n    if kwargs:\n")
    assert {failure.error.partition(" (")[0] for failure in compiled(operator).failures} == {"SystemExit: 0"}
