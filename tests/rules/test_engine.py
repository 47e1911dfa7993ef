"""The engine: what is reported, in which order, and what comments take back."""

from pathlib import Path

import pytest

from tilewright.rules.engine import Report
from tilewright.rules.engine import check_files
from tilewright.rules.engine import check_sources
from tilewright.rules.finding import Severity

IMPORTS = "from . import b\nfrom . import a\n"  # TW117, an info, on line 2
INIT = Path("my_ops/__init__.py")


def check(text: str, path: Path = INIT) -> Report:
    return check_sources({path: text})


def codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings]


def test_findings_come_by_file_and_line_and_once() -> None:
    exports = '__all__ = ["y", "x"]\n'
    report = check_sources({Path("b.py"): exports, Path("a/__init__.py"): IMPORTS, Path("a/a.py"): exports})
    places = [(str(finding.path), finding.line, finding.column) for finding in report.findings]
    assert places == sorted(set(places))
    assert codes(report) == ["TW117", "TW114", "TW114", "TW114", "TW114"]


def test_only_infos_do_not_fail() -> None:
    assert check(IMPORTS).count(Severity.INFO) == 1
    assert not check(IMPORTS).failed
    assert check('__all__ = ["x"]\n', Path("my_op.py")).failed


@pytest.mark.parametrize(
    "text",
    [
        "from . import b\nfrom . import a  # tw: ignore[TW117] the order matters\n",
        "from . import b\n# tw: ignore[TW117] the order matters\nfrom . import a\n",
        "from . import b\n# tw: ignore[TW117] the order matters\n# to another file\n\nfrom . import a\n",
        "from . import b\nfrom . import (\n    a,  # tw: ignore[TW117, TW114] the order matters\n)\n",
    ],
)
def test_a_comment_takes_a_finding_back(text: str) -> None:
    assert "TW117" not in codes(check(text))


@pytest.mark.parametrize(
    "text",
    [
        "from . import b  # tw: ignore[TW117] another statement\nfrom . import a\n",
        "from . import b\nfrom . import a  # tw: ignore[TW114] another code\n",
        'from . import b\nfrom . import a\nx = "# tw: ignore[TW117] no comment"\n',
    ],
)
def test_a_comment_elsewhere_does_not(text: str) -> None:
    assert "TW117" in codes(check(text))


def test_a_comment_without_a_reason_takes_back_and_is_found() -> None:
    assert codes(check("from . import b\nfrom . import a  # tw: ignore[TW117]\n")) == ["TW002"]


def test_a_comment_on_the_head_of_a_block_does_not_cover_its_body() -> None:
    text = "if True:  # tw: ignore[TW117] the head only\n    from . import b\n    from . import a\n"
    assert codes(check(text)) == ["TW004", "TW117"]


def test_a_code_is_unused_only_if_its_rule_ran() -> None:
    from tilewright.rules.selection import choose

    text = "x = 1  # tw: ignore[TW117] sorted in fact\n"
    assert codes(check_sources({INIT: text}, choose(["TW0"], []))) == []
    assert codes(check_sources({INIT: text}, choose(["TW0", "TW117"], []))) == ["TW004"]


@pytest.mark.parametrize(
    "text", ["def f(:\n", "x = '\n", "\ud800", "(" * 500, "if x:\n\ty\n        z\n", "return 1\n", "nonlocal x\n"]
)
def test_what_does_not_parse_is_one_finding_and_the_rest_is_checked(text: str) -> None:
    report = check_sources({Path("bad.py"): text, INIT: IMPORTS})
    assert codes(report) == ["TW001", "TW117"]
    assert report.findings[0].line >= 1


def test_columns_count_characters() -> None:
    report = check('é = "ü"; __all__ = ["x"]\n', Path("my_op.py"))
    assert [(finding.column, finding.end_column) for finding in report.findings] == [(21, 24)]


def test_files_are_read_with_their_encoding(tmp_path: Path) -> None:
    path = tmp_path / "my_op.py"
    path.write_bytes("# coding: latin-1\nx = 'é'; __all__ = ['y']\n".encode("latin-1"))
    assert [(finding.code, finding.column) for finding in check_files([path]).findings] == [("TW114", 21)]
    path.write_bytes(b"\xef\xbb\xbf__all__ = ['y']\r\n")
    assert [(finding.code, finding.column) for finding in check_files([path]).findings] == [("TW114", 12)]
