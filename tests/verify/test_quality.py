from types import SimpleNamespace

import pytest

from tests.support.hosts import edit
from tilewright.errors import MissingError
from tilewright.model.kernel import CaptureFailure
from tilewright.model.kernel import Compilation
from tilewright.model.kernel import CompiledKernel
from tilewright.model.kernel import Resources
from tilewright.model.outcome import Verdict
from tilewright.verify.quality import run


def kernel(arch="sm_90", spilled=0, error=""):
    resources = None if error else Resources(registers=32, spilled_bytes=spilled, shared_bytes=0, code_bytes=100)
    return CompiledKernel(
        kernel="_k", arch=arch, dtype="float16", signature="aligned", symbol=arch, resources=resources, error=error
    )


def outcome(operator, *kernels, **fields):
    return run(operator, SimpleNamespace(compile=lambda _: Compilation(op="scale_add", kernels=kernels, **fields)))


def test_clean_and_compiled(operator):
    found = outcome(operator, kernel(), kernel("sm_100", spilled=8))
    assert found.verdict is Verdict.OK
    assert found.detail == "1 kernel, 2 compilations for 2 architectures, registers spilled in 1"
    assert found.data["compilation"]["kernels"][0]["resources"]["registers"] == 32


def test_an_architecture_that_is_refused(operator):
    refusals = tuple(
        CaptureFailure(arch=arch, dtype=dtype, error="no float8", refused=True)
        for arch in ("sm_80", "sm_89")
        for dtype in ("float8_e4m3fn", "float8_e5m2")
    )
    found = outcome(operator, kernel(), failures=refusals)
    assert found.verdict is Verdict.OK
    assert found.detail == "1 kernel, 1 compilations for 1 architecture, refused for sm_80, sm_89"
    assert outcome(operator, failures=refusals).verdict is Verdict.FAILED


def test_kernel_that_does_not_compile(operator):
    found = outcome(operator, kernel(), kernel("sm_80", error="too big"))
    assert (found.verdict, found.detail) == (Verdict.FAILED, "_k sm_80 float16 aligned: too big")


def test_kernel_that_nothing_launches(operator):
    assert outcome(operator, kernel(), unreached=("_long",)).verdict is Verdict.FAILED


def test_lint_writes_nothing(operator):
    pytest.importorskip("ruff")
    before = sorted(operator.host.root.rglob("*"))
    outcome(operator, kernel())
    assert sorted(operator.host.root.rglob("*")) == before


def test_lint(operator):
    pytest.importorskip("ruff")
    edit(operator, operator.kernel, "import torch\n", "import os\nimport torch\n")
    found = outcome(operator, kernel())
    assert found.verdict is Verdict.FAILED
    assert "cutile.py:" in found.detail
    assert "run ruff check --fix tiny_ops/scale_add/cutile.py" in found.detail


def test_format(operator):
    pytest.importorskip("ruff")
    edit(operator, operator.test, "assert_close(tiny_ops", "assert_close( tiny_ops")
    found = outcome(operator, kernel())
    assert found.verdict is Verdict.FAILED
    assert "run ruff format" in found.detail


def test_what_a_rule_finds(operator):
    edit(operator, operator.kernel, 'backend="cutile")\ndef scale_add(', 'backend="cutile")\ndef scale_add(stream, ')
    found = outcome(operator, kernel())
    assert found.verdict is Verdict.FAILED
    assert any("cutile.py:" in problem and ": TW103 " in problem for problem in found.data["problems"])


def test_rules_that_the_host_ignores(operator):
    (operator.host.root / "pyproject.toml").write_text('[tool.tilewright]\nignore = ["TW1"]\n')
    edit(operator, operator.kernel, 'backend="cutile")\ndef scale_add(', 'backend="cutile")\ndef scale_add(stream, ')
    assert not any("TW1" in problem for problem in outcome(operator, kernel()).data.get("problems", ()))


def test_rules_that_the_host_selects(operator):
    (operator.host.root / "pyproject.toml").write_text('[tool.tilewright]\nselect = ["TW2"]\n')
    edit(operator, operator.kernel, 'backend="cutile")\ndef scale_add(', 'backend="cutile")\ndef scale_add(stream, ')
    assert not any("TW1" in problem for problem in outcome(operator, kernel()).data.get("problems", ()))


def missing(_):
    raise MissingError("tileiras not found", hint="install it")


def test_what_a_rule_finds_without_a_compiler(operator):
    edit(operator, operator.kernel, 'backend="cutile")\ndef scale_add(', 'backend="cutile")\ndef scale_add(stream, ')
    found = run(operator, SimpleNamespace(compile=missing))
    assert found.verdict is Verdict.FAILED
    assert any(": TW103 " in problem for problem in found.data["problems"])


def test_no_compiler(operator):
    found = run(operator, SimpleNamespace(compile=missing))
    assert (found.verdict, found.detail) == (Verdict.SKIPPED, "tileiras not found; install it")
    assert found.data == {"missing": "compiler"}
