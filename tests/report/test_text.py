from dataclasses import replace

import pytest

from tests.support import results
from tilewright.model.kernel import CaptureFailure
from tilewright.report.text import TextReport


@pytest.fixture
def printed(capsys):
    """Lines that a report prints, without the space at their ends."""

    def lines(show):
        show(TextReport())
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    return lines


def test_steps_are_a_line_each_with_further_problems_below(printed):
    assert printed(lambda report: [report.step(outcome) for outcome in results.STEPS]) == [
        "  stub          ok",
        "  kernel        failed: a: mend it",
        "                b",
        "  registration  ok: cutile",
        "  tests         skipped: no GPU",
        "  benchmark     n/a: no baseline exists",
        "  verify        skipped: no compiler",
    ]


def test_many_problems_are_counted(printed):
    many = replace(results.STEPS[1], data={"problems": [f"problem {i}" for i in range(20)]})
    assert printed(lambda report: report.step(many))[-1] == "                and 12 more; --json lists them"


def test_long_lines_are_not_wrapped(printed):
    long = replace(results.STEPS[1], detail="word " * 100 + "end", data={})
    assert len(printed(lambda report: report.step(long))) == 1


def test_compiled_kernels_are_rows(printed):
    lines = printed(lambda report: report.compilation(results.COMPILATION))
    assert [" ".join(line.split()) for line in lines] == [
        "kernel arch dtype signature registers spilled shared seconds",
        "_gelu_kernel sm_90 float16 aligned 42 96 2048 0.25",
        "_gelu_kernel sm_90 float16 unaligned failed 0.00",
        "failed: sm_80 float32: ValueError: no",
        "failed: _gelu_kernel sm_90 float16 unaligned: the compiler was ended by SIGSEGV",
        "failed: _gelu_long_kernel is launched by no shape in _aligned or _ragged: add one",
    ]


def test_an_architecture_that_is_refused_is_a_line(printed):
    refusal = CaptureFailure(arch="sm_80", dtype="float16", error="no float8", refused=True)
    lines = printed(lambda report: report.compilation(replace(results.COMPILATION, failures=(refusal,), unreached=())))
    assert lines[-1] == "skipped: sm_80 float16: no float8"


def test_status_names_the_installed_template_where_it_is_newer(printed):
    lines = printed(lambda report: report.status(results.STATUS, "0.1.0", results.STANDING))
    assert lines[1].split(maxsplit=7)[1:] == [
        *("ok", "failed", "ok", "skipped", "n/a", "skipped"),
        "0.0.9 (1 version behind 0.1.0)",
    ]
    assert lines[2].endswith("by hand")
    assert lines[3:] == [
        "gelu kernel: a: mend it",
        "gelu benchmark: no baseline exists",
        "gelu tests: detached, no update changes it",
        "changed in 0.1.0:",
        "  - Faster kernels.",
    ]


def test_findings_have_the_command_that_mends_them(printed):
    assert printed(lambda report: report.findings(results.FINDINGS)) == [
        "git       present  2.39.5         /usr/bin/git",
        "torch     missing  (needed to compile)",
        "                   mend: pip install torch",
    ]


def test_no_colour_in_a_file(printed, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert "\x1b" not in "".join(printed(lambda report: report.step(results.STEPS[0])))
