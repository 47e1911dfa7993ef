from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.report.annotations import github
from tilewright.report.findings import frame
from tilewright.report.findings import lines
from tilewright.report.findings import summary
from tilewright.rules.engine import check_sources

TEXT = "\n" * 8 + "é = 1  # tw: ignore\n" + "x = 2\n"


@pytest.fixture
def report():
    return check_sources({Path("a.py"): TEXT})


def test_a_frame_marks_the_place_and_says_what_to_do(report):
    (finding,) = report.findings
    assert list(frame(finding, TEXT)) == [
        "9 | é = 1  # tw: ignore",
        "  |        ^^^^^^^^^^^^",
        "  = Write the reason behind the codes: # tw: ignore[TW203] the host pads the array.",
        "",
    ]


def test_a_file_has_no_frames_and_no_colours(report):
    assert list(lines(report)) == ["a.py:9:8: TW002 the comment names no code: write # tw: ignore[CODE] reason"]


def test_a_terminal_has_both(report, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = list(lines(report))
    assert shown[0].startswith("\033[1ma.py:9:8:\033[0m \033[33mTW002\033[0m ")
    assert "\033[33m^^^^^^^^^^^^\033[0m" in shown[2]
    monkeypatch.setenv("NO_COLOR", "1")
    assert not any("\033" in line for line in lines(report))


def test_the_summary_counts(report):
    assert summary(report, 0.25) == "1 warning in 1 file (0.2 s)"
    assert summary(check_sources({}), 0.0) == "nothing found in 0 files (0.0 s)"


def test_github_takes_characters_that_mean_something_to_it_by_their_numbers(report):
    (finding,) = report.findings
    odd = replace(finding, path=Path("a,b:c.py"), message="50% of\nit: a, b")
    (line,) = github(replace(report, findings=(odd,)))
    assert line.startswith("::warning file=a%2Cb%3Ac.py,line=9,")
    assert line.endswith("::50%25 of%0Ait: a, b")
