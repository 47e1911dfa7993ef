from types import SimpleNamespace

import pytest

from tests.support.hosts import edit
from tilewright.model.outcome import Verdict
from tilewright.verify.benchmark import problems
from tilewright.verify.benchmark import run
from tilewright.verify.device import Devices
from tilewright.verify.device import Gpu

WITHOUT = SimpleNamespace(devices=Devices(why_none="no GPU"))
WITH = SimpleNamespace(devices=Devices(gpus=(Gpu(name="a GPU", arch="sm_90"),)))


def test_benchmark_as_it_should_be(operator):
    assert list(problems(operator)) == []


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("triton.testing.perf_report(", "str(", "does not use triton.testing.perf_report"),
        ("torch.testing.assert_close(", "print(", "times without checking"),
        ('"scale_add-GBps"', '"scale_add"', "plot_name must end in -GBps or -TFLOPS"),
        ('"scale_add-GBps"', 'f"scale_add-GBps-{1}"', "plot_name must end in"),
        ('"CuTile"', '"cu Tile"', "line_names has 'cu Tile'"),
        ('if __name__ == "__main__":', "if True:", "does nothing when it is run"),
        ("import tiny_ops\n", "import tiny_ops.scale_add.cutile\n", "import scale_add from tiny_ops instead"),
    ],
)
def test_what_reports_cannot_use(operator, old, new, found):
    edit(operator, operator.benchmark, old, new)
    assert [found in problem for problem in problems(operator)] == [True]


@pytest.mark.parametrize("name", ['f"{1}-TFLOPS"', '"scale" + "-GBps"'])
def test_name_put_together_at_run_time(operator, name):
    edit(operator, operator.benchmark, '"scale_add-GBps"', name)
    assert list(problems(operator)) == []


def test_nothing_is_timed_without_a_gpu(operator):
    assert run(operator, WITHOUT).verdict is Verdict.SKIPPED


def test_tables_are_counted(operator):
    operator.path(operator.benchmark).write_text('print("noise\\nscale_add-float16-GBps:\\n  n cutile\\n0 1.0 2.0")')
    outcome = run(operator, WITH)
    assert (outcome.verdict, outcome.detail) == (Verdict.OK, "1 tables")
    assert "0 1.0 2.0" in outcome.data["output"]


@pytest.mark.parametrize(
    ("text", "found"), [("raise SystemExit('out of memory')", "out of memory"), ("", "printed no table")]
)
def test_benchmark_that_does_not_run(operator, text, found):
    operator.path(operator.benchmark).write_text(text)
    outcome = run(operator, WITH)
    assert outcome.verdict is Verdict.FAILED
    assert found in outcome.detail
