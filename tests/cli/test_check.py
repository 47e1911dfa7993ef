import json
import os
from pathlib import Path

import pytest

from tests.cli.test_documents import check as validate
from tilewright.errors import UsageError
from tilewright.rules.engine import check_files
from tilewright.rules.fixing import mend
from tilewright.rules.registry import all_rules

IGNORED = "x = 1  # tw: ignore\n"  # a warning: no code and no reason
UNUSED = "x = 1  # tw: ignore[TW101] there is no dispatcher here\n"  # a warning with a fix
UNSORTED = "from . import a\nfrom . import c\nfrom . import b\n"  # an info
UNBOUND = '__all__ = ["scaled"]\n'  # an error


@pytest.fixture
def operator(here: Path) -> Path:
    path = here / "operator.py"
    path.write_text(IGNORED)
    return path


def test_a_finding_is_a_line_with_its_place(tilewright, operator):
    result = tilewright("check", operator)
    assert result.stdout.startswith(
        "operator.py:1:8: TW002 the comment names no code: write # tw: ignore[CODE] reason\n"
    )
    assert "1 warning" in result.stderr
    assert "in 1 file " in result.stderr
    assert result.exit_code == 1


def test_nothing_found_is_fine(tilewright, operator):
    operator.write_text("x = 1\n")
    result = tilewright("check", operator)
    assert (result.stdout, result.exit_code) == ("", 0)
    assert "nothing found" in result.stderr


def test_infos_alone_are_fine(tilewright, here):
    (here / "__init__.py").write_text(UNSORTED)
    result = tilewright("check", here)
    assert "TW117" in result.stdout
    assert result.exit_code == 0


def test_rules_are_chosen_by_the_beginning_of_their_code(tilewright, operator):
    assert tilewright("check", operator, "--select", "TW1").exit_code == 0
    assert tilewright("check", operator, "--select", "TW1,tw0").exit_code == 1
    assert tilewright("check", operator, "--ignore", "TW0").exit_code == 0


def test_an_unknown_code_is_named_with_the_nearest(tilewright, operator):
    result = tilewright("check", operator, "--select", "TW1O1")
    assert result.exit_code == 2
    assert "no rule TW1O1" in result.stderr
    assert "did you mean TW" in result.stderr


def test_a_path_that_does_not_exist(tilewright, here):
    result = tilewright("check", "nowhere.py")
    assert result.exit_code == 2
    assert "nowhere.py does not exist" in result.stderr


def test_without_paths_and_host_it_says_where_to_go(tilewright, here):
    result = tilewright("check")
    assert result.exit_code == 2
    assert "no host repository" in result.stderr


def test_the_default_is_the_host(tilewright, here):
    tilewright("new", "my_op")
    result = tilewright("check")
    assert (result.stdout, result.exit_code) == ("", 0)
    kernel = next(here.glob("*/my_op/cutile.py"))
    kernel.write_text(kernel.read_text() + IGNORED)
    assert f"{kernel.relative_to(here).as_posix()}:" in tilewright("check").stdout


@pytest.mark.parametrize(
    "options", [["--json"], ["--output-format", "json"], ["--json", "--fix"], ["--json", "--diff"]]
)
def test_the_document_is_what_its_schema_says(tilewright, operator, options):
    result = tilewright("check", operator, *options)
    validate(result.stdout, "check")
    assert json.loads(result.stdout)["counts"]["warning"] == 1


def test_the_document_says_what_was_mended(tilewright, operator):
    operator.write_text(UNUSED)
    shown = json.loads(tilewright("check", operator, "--json", "--diff").stdout)["fix"]
    assert (shown["written"], shown["mended"], "+x = 1\n" in shown["diff"]) == (False, 1, True)
    mended = json.loads(tilewright("check", operator, "--json", "--fix").stdout)["fix"]
    assert (mended["written"], mended["mended"], [each["path"] for each in mended["files"]]) == (
        True,
        1,
        ["operator.py"],
    )


def test_annotations_of_github(tilewright, operator):
    lines = tilewright("check", operator, "--output-format", "github").stdout.splitlines()
    assert lines[0] == (
        "::warning file=operator.py,line=1,endLine=1,col=8,endColumn=20,title=TW002::"
        "the comment names no code: write # tw: ignore[CODE] reason"
    )


def test_a_log_for_code_scanning(tilewright, operator):
    log = json.loads(tilewright("check", operator, "--output-format", "sarif").stdout)
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    assert (run["results"][0]["ruleId"], run["results"][0]["level"]) == ("TW002", "warning")
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"]["startColumn"] == 8
    assert {"TW002", "TW101"} <= {rule["id"] for rule in run["tool"]["driver"]["rules"]}


def test_settings_of_the_project(tilewright, operator, here):
    pyproject = here / "pyproject.toml"
    pyproject.write_text('[tool.tilewright]\nignore = ["TW002"]\n')
    assert tilewright("check", operator).exit_code == 0
    pyproject.write_text('[tool.tilewright]\nselect = ["TW1"]\n')
    assert tilewright("check", operator).exit_code == 0
    assert tilewright("check", operator, "--select", "TW0").exit_code == 1
    pyproject.write_text('[tool.tilewright]\nexclude = ["oper*.py"]\n')
    assert "in 0 files" in tilewright("check", operator).stderr


def test_a_mistyped_setting_is_named_with_the_nearest(tilewright, operator, here):
    (here / "pyproject.toml").write_text('[tool.tilewright]\nignores = ["TW002"]\n')
    result = tilewright("check", operator)
    assert result.exit_code == 2
    assert "no key ignores" in result.stderr
    assert "did you mean ignore?" in result.stderr


@pytest.mark.parametrize("value", ['"TW1"', "[1]", "true"])
def test_a_setting_with_another_value_is_refused(tilewright, operator, here, value):
    (here / "pyproject.toml").write_text(f"[tool.tilewright]\nselect = {value}\n")
    result = tilewright("check", operator)
    assert result.exit_code == 2
    assert 'expected a list of strings, as in select = ["TW2"]' in result.stderr


@pytest.mark.parametrize("text", ["tool.tilewright = 3", "[[tool.tilewright]]"])
def test_settings_that_are_no_table_are_refused(tilewright, operator, here, text):
    (here / "pyproject.toml").write_text(f"{text}\n")
    result = tilewright("check", operator)
    assert result.exit_code == 2
    assert "expected a table: [tool.tilewright]" in result.stderr


@pytest.mark.parametrize("pattern", ["/", ".", "/**", "["])
def test_a_pattern_that_names_nothing_excludes_nothing(tilewright, operator, here, pattern):
    (here / "pyproject.toml").write_text(f'[tool.tilewright]\nexclude = ["{pattern}"]\n')
    assert "TW002" in tilewright("check", operator).stdout


def test_a_pipe_is_not_waited_for(tilewright, operator, here):
    os.mkfifo(here / "pipe.py")
    result = tilewright("check", here)
    assert "pipe.py:1:1: TW005 is no regular file" in result.stdout
    assert "operator.py:1:8: TW002" in result.stdout


def test_hidden_folders_are_left_out(tilewright, operator, here):
    (here / ".hidden").mkdir()
    operator.rename(here / ".hidden" / "operator.py")
    assert "in 0 files" in tilewright("check", here).stderr


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.py", b"def f(:\n", "TW001 invalid syntax"),
        ("a.py", b"\0\0", "TW005 is binary"),
        ("a.py", b"#" * 10_000_000, "TW005 has 10 MB"),
        ("a.py", b"# coding: latin-2\nx = '\xff'\n# coding: none\n", ""),
        ("a.py", b"# coding: martian\n", "TW005 cannot be decoded"),
        ("a.py", b"x = '\xff'\n", "TW005 cannot be decoded"),
        ("a.ipynb", b"{}", "TW005 is a notebook"),
    ],
)
def test_what_cannot_be_checked_is_reported_and_the_rest_checked(tilewright, operator, here, name, content, message):
    (here / name).write_bytes(content)
    result = tilewright("check", name, operator)
    assert message in result.stdout
    assert "operator.py:1:8: TW002" in result.stdout


def test_a_folder_gives_its_python_files_and_follows_no_loop(tilewright, operator, here):
    (here / "loop").symlink_to(here, target_is_directory=True)
    (here / "self.py").symlink_to(here / "self.py")
    (here / "a.ipynb").write_text("{}")
    result = tilewright("check", here)
    assert result.stdout.count("operator.py") == result.stdout.count("\n") - 1
    assert "self.py:1:1: TW005 cannot be read" in result.stdout


def test_fix_writes_what_diff_shows(tilewright, operator, here):
    operator.write_text(UNUSED)
    shown = tilewright("check", operator, "--diff")
    assert "-x = 1  # tw: ignore[TW101] there is no dispatcher here\n+x = 1\n" in shown.stdout
    assert tilewright("check", operator, "--fix", "--dry-run").exit_code == shown.exit_code == 1
    assert operator.read_text() == UNUSED
    mended = tilewright("check", operator, "--fix")
    assert "1 mended in 1 file" in mended.stderr
    assert mended.exit_code == 0
    assert operator.read_text() == "x = 1\n"
    assert [path.name for path in here.iterdir()] == ["operator.py"]


def test_fix_mends_what_a_link_leads_to_and_keeps_the_link(tilewright, operator, here):
    operator.write_text(UNUSED)
    (here / "link.py").symlink_to("operator.py")
    assert "1 mended in 1 file" in tilewright("check", here, "--fix").stderr
    assert operator.read_text() == "x = 1\n"
    assert (here / "link.py").is_symlink()


@pytest.mark.parametrize("now", [None, b"x = 2\n", b"# coding: martian\n"])
def test_a_file_that_changes_meanwhile_is_not_mended(operator, now):
    operator.write_text(UNUSED)
    report = check_files([operator])
    operator.unlink()
    if now is not None:
        operator.write_bytes(now)
    with pytest.raises(UsageError, match="changed while it was checked"):
        mend(report, all_rules(), context={})


def test_fix_keeps_line_ends_and_encoding(tilewright, operator):
    operator.write_bytes("# coding: latin-1\r\ny = 'é'\r\n".encode("latin-1") + UNUSED.encode())
    tilewright("check", operator, "--fix")
    assert operator.read_bytes() == b"# coding: latin-1\r\ny = '\xe9'\r\nx = 1\n"


def test_one_file_of_tilegym_is_judged_with_the_stub_that_is_elsewhere(
    tilewright, pristine_tilegym_checkout, monkeypatch
):
    monkeypatch.chdir(pristine_tilegym_checkout)
    result = tilewright("check", "src/tilegym/ops/cutile/gemma_attention_decode.py", "--select", "TW1")
    assert "TW101 scaling of the stub gemma_attention_decode is swallowed by **kwargs" in result.stdout
    assert result.exit_code == 1
