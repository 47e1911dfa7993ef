from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.support.hosts import edit
from tilewright.model.outcome import Verdict
from tilewright.verify import tests
from tilewright.verify.device import Devices
from tilewright.verify.device import Gpu
from tilewright.verify.tests import Counts
from tilewright.verify.tests import problems
from tilewright.verify.tests import read_junit
from tilewright.verify.tests import run

WITHOUT = SimpleNamespace(devices=Devices(why_none="no GPU"), interpreted_arch="sm_100")
WITH = SimpleNamespace(devices=Devices(gpus=(Gpu(name="a GPU", arch="sm_90"),)))
NEEDS_CUDA = "        if not torch.cuda.is_available():\n            pytest.skip"


@pytest.fixture
def rendered(operator):
    return replace(operator, template_version="0.1.0")


def test_tests_as_they_should_be(rendered):
    assert list(problems(rendered)) == []


def test_test_that_continuous_integration_does_not_run(rendered):
    edit(rendered, rendered.test, "def test_op(", "def test_scale_add(")
    found = list(problems(rendered))
    assert "has no test named test_op" in found[0]
    assert "test_scale_add: call it test_op_..." in found[1]


@pytest.mark.parametrize(
    "line",
    [
        "from tiny_ops.scale_add.cutile import scale_add",
        "from tiny_ops.scale_add import cutile",
        "import tiny_ops.scale_add.cutile",
    ],
)
def test_import_of_the_backend_itself(rendered, line):
    edit(rendered, rendered.test, "import tiny_ops\n", f"import tiny_ops\n{line}\n")
    assert [problem.endswith("import scale_add from tiny_ops instead") for problem in problems(rendered)] == [True]


def test_import_of_cuda_tile_is_none_of_the_backend(rendered):
    edit(rendered, rendered.test, "import tiny_ops\n", "import cuda.tile as ct\n")
    assert list(problems(rendered)) == []


def test_cases_that_compilation_needs(rendered):
    edit(rendered, rendered.test, "    _ragged = [(7, 1021), (1,)]\n", "")
    assert "Test_ScaleAdd lacks _ragged" in next(problems(rendered))


def test_tests_by_hand_need_no_cases(operator):
    edit(operator, operator.test, "    _ragged = [(7, 1021), (1,)]\n", "")
    assert list(problems(operator)) == []


def test_tests_run_in_the_interpreter_without_a_gpu(operator):
    outcome = run(operator, WITHOUT)
    assert (outcome.verdict, outcome.detail) == (Verdict.OK, "6 passed in the interpreter")
    assert outcome.data == {"device": "interpreter", "passed": 6, "failed": 0, "skipped": 0}


def test_interpreter_stands_for_an_architecture(operator):
    edit(
        operator,
        operator.test,
        "        self.select(backend)\n",
        "        assert torch.cuda.get_device_capability()[0] < 10\n",
    )
    outcome = run(operator, WITHOUT)
    assert outcome.detail.startswith("6 of 6 tests in the interpreter: test_op[")


def test_wrong_results_are_found_in_the_interpreter(operator):
    edit(operator, operator.kernel, "ct.store(Out, (i,), (tx", "ct.store(Out, (i + 1,), (tx")
    outcome = run(operator, WITHOUT)
    assert outcome.verdict is Verdict.FAILED
    assert "6 of 6 tests in the interpreter: test_op[shape0-dtype0-cutile]: AssertionError: Tensor" in outcome.detail


@pytest.mark.parametrize("module", ["torch", "cuda.tile"])
def test_neither_gpu_nor_interpreter(operator, module, monkeypatch):
    monkeypatch.setattr(tests, "is_installed", lambda name: name != module)
    outcome = run(operator, WITHOUT)
    assert (outcome.verdict, outcome.data) == (Verdict.SKIPPED, {"missing": "compiler"})
    assert outcome.detail.startswith(f"no GPU, and no interpreter: {module} not installed: pip install")


def test_tests_that_all_skip_are_a_failure(operator):
    edit(operator, operator.test.parent.parent / "common.py", NEEDS_CUDA, "        if True:\n            pytest.skip")
    outcome = run(operator, WITH)
    assert outcome.verdict is Verdict.FAILED
    assert outcome.detail == "0 of 6 tests: no test ran, 6 skipped: no CUDA device"


def test_tests_that_run_are_counted(operator):
    edit(operator, operator.test.parent.parent / "common.py", NEEDS_CUDA, "        if False:\n            pytest.skip")
    edit(
        operator,
        operator.test,
        "        self.select(backend)\n",
        "        if shape == (1,):\n            pytest.skip()\n        return\n",
    )
    outcome = run(operator, WITH)
    assert (outcome.verdict, outcome.detail) == (Verdict.OK, "4 passed, 2 skipped")
    assert outcome.data == {"device": "gpu", "passed": 4, "failed": 0, "skipped": 2}


def test_tests_that_fail_are_named(operator):
    edit(operator, operator.test.parent.parent / "common.py", NEEDS_CUDA, "        if False:\n            pytest.skip")
    edit(operator, operator.test, "        self.select(backend)\n", "        assert shape != (1,)\n        return\n")
    outcome = run(operator, WITH)
    assert outcome.verdict is Verdict.FAILED
    assert outcome.detail.startswith("2 of 6 tests: test_op[shape2-dtype0-cutile]: ")


def test_tests_that_cannot_be_collected_are_a_failure(operator):
    edit(operator, operator.test, "import tiny_ops\n", "import no_such_module\n")
    outcome = run(operator, WITH)
    assert outcome.verdict is Verdict.FAILED
    assert "1 of 1 tests" in outcome.detail


def test_junit_file(tmp_path):
    report = tmp_path / "junit.xml"
    report.write_text(
        '<testsuites><testsuite tests="4"><testcase name="a"/><testcase name="b"><skipped message="no"/></testcase>'
        '<testcase name="c"><failure message="wrong&#10;in detail">all of it</failure></testcase>'
        '<testcase name="d"><error message="broken"/></testcase></testsuite></testsuites>'
    )
    assert read_junit(report) == Counts(
        passed=1, failed=2, skipped=1, first_failure="c: wrong", first_skip="no", first_text="all of it"
    )


def test_wrong_results_are_summed_up_with_advice(operator):
    edit(operator, operator.kernel, "ct.store(Out, (i,), (tx", "ct.store(Out, (i,), 2 * (tx")
    outcome = run(operator, WITHOUT)
    verdict, count, *_, title, cause = outcome.data["advice"]
    assert verdict == "algorithm: the wrong elements are 2 times the reference"
    assert " elements differ (" in count
    assert title.endswith("(tilewright explain not-close)")
    assert cause.startswith("most likely: ")
