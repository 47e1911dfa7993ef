from dataclasses import replace

import pytest

from tests.support.hosts import edit
from tilewright.model.outcome import Verdict
from tilewright.verify.registration import problems
from tilewright.verify.registration import run as run_step
from tilewright.verify.session import Session


def run(operator):
    return run_step(operator, Session([operator]))


def test_registration_as_it_should_be(operator):
    assert list(problems(operator)) == []


def test_module_that_nothing_imports(operator):
    assert list(problems(replace(operator, loaded=False))) == [
        "importing tiny_ops does not load tiny_ops/scale_add/cutile.py: import cutile in tiny_ops/scale_add/__init__.py"
    ]


def test_tilegym_operator_that_is_not_registered(operator):
    checkout = replace(operator.host, layout="tilegym", package="src/tilegym")
    found = list(problems(replace(operator, host=checkout, declared=False)))
    assert [problem.partition(": ")[2] for problem in found] == ["run: tilewright register scale_add"]


def test_imported_package_knows_the_backend(operator):
    pytest.importorskip("cuda.tile")
    outcome = run(operator)
    assert (outcome.verdict, outcome.detail) == (Verdict.OK, "cutile")


def test_backend_that_is_not_loaded(operator):
    pytest.importorskip("cuda.tile")
    init = operator.stub.parent / "__init__.py"
    edit(operator, init, "from . import cutile as _cutile  # noqa: F401  registers the backend\n", "")
    outcome = run(operator)
    assert (outcome.verdict, outcome.detail) == (
        Verdict.FAILED,
        "the backends of scale_add are []: cutile is missing",
    )


def test_package_that_cannot_be_imported(operator):
    pytest.importorskip("cuda.tile")
    edit(operator, operator.stub, "import torch\n", "import no_such_module\n")
    outcome = run(operator)
    assert outcome.verdict is Verdict.FAILED
    assert outcome.detail == "import tiny_ops fails: ModuleNotFoundError: No module named 'no_such_module'"


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("raise RuntimeError('two\\nlines')", "fails: RuntimeError: two lines"),
        ("raise SystemExit(0)", "fails: SystemExit: 0"),
        ("import os; os._exit(0)", "ends the process"),
        ("import os; os._exit(3)", "fails: exit code 3"),
    ],
)
def test_package_that_ends_the_process(operator, statement, what):
    pytest.importorskip("cuda.tile")
    edit(operator, operator.stub, "import torch\n", f"import torch\n{statement}\n")
    outcome = run(operator)
    assert (outcome.verdict, outcome.detail) == (Verdict.FAILED, f"import tiny_ops {what}")


def test_package_that_prints_when_the_process_ends(operator):
    pytest.importorskip("cuda.tile")
    noise = "import atexit\natexit.register(print, 'bye')\n"
    edit(operator, operator.stub, "import torch\n", f"import torch\n{noise}")
    assert run(operator).verdict is Verdict.OK


def test_operator_that_is_not_exported(operator):
    pytest.importorskip("cuda.tile")
    init = operator.host.root / "tiny_ops" / "__init__.py"
    init.write_text("from . import scale_add as _scale_add\nscale_add = None\n")
    outcome = run(replace(operator, template_version="0.1.0"))
    assert outcome.detail == "tiny_ops does not export scale_add: import it there"


def test_nothing_is_imported_without_cuda_tile(operator, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    outcome = run(operator)
    assert (outcome.verdict, outcome.data) == (Verdict.SKIPPED, {"missing": "compiler"})
