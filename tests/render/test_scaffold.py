"""A render is what copier writes, compared with what the host has."""

import subprocess
import sys
from pathlib import Path
from pathlib import PurePosixPath

import pytest

from tilewright.changes import apply
from tilewright.errors import UsageError
from tilewright.render import locate
from tilewright.render import render
from tilewright.render import scaffold

SOURCE = locate()


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def tilegym_marker(tmp_path: Path) -> Path:
    ops = tmp_path / "src" / "tilegym" / "ops"
    ops.mkdir(parents=True)
    (ops / "ops.py").touch()
    return tmp_path


def copier_copy(destination: Path, *data: str) -> None:
    options = [option for pair in data for option in ("--data", pair)]
    subprocess.run(
        [sys.executable, "-m", "copier", "copy", "--quiet", *options, str(SOURCE.template), str(destination)],
        check=True,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(
    "data",
    [{"op": "my_op"}, {"op": "scaled", "formula": "x * a, a=2.0", "package": "src/own"}],
    ids=["default", "other"],
)
def test_a_render_is_what_copier_copy_writes(tmp_path, data):
    """Both go to the same place, one after the other: the destination may be recorded."""
    rendering = render(SOURCE, data, tmp_path / "host")
    copier_copy(tmp_path / "host", *(f"{key}={value}" for key, value in data.items()))
    assert {str(file.path): file.content for file in rendering.files} == tree(tmp_path / "host")


def test_a_render_into_tilegym_is_what_copier_copy_writes(tilegym_marker):
    rendering = render(SOURCE, {"op": "my_op"}, tilegym_marker)
    assert rendering.answers["layout"] == "tilegym"
    copier_copy(tilegym_marker, "op=my_op")
    written = tree(tilegym_marker)
    del written["src/tilegym/ops/ops.py"]
    assert {str(file.path): file.content for file in rendering.files} == written


def test_nothing_is_written_to_the_destination(tmp_path):
    render(SOURCE, {"op": "my_op"}, tmp_path / "host")
    assert not (tmp_path / "host").exists()


def test_a_second_operator_brings_only_its_own_files(tmp_path):
    apply(scaffold(render(SOURCE, {"op": "first"}, tmp_path), tmp_path))
    (tmp_path / "Makefile").write_text("mine\n")
    changes = scaffold(render(SOURCE, {"op": "second"}, tmp_path), tmp_path)
    assert {change.kind for change in changes.changes} == {"create"}
    assert all("second" in str(change.path) for change in changes.changes)


def test_a_file_of_somebody_else_is_not_overwritten(tmp_path):
    (tmp_path / "tests" / "ops").mkdir(parents=True)
    (tmp_path / "tests" / "ops" / "test_my_op.py").write_text("mine\n")
    with pytest.raises(UsageError, match=r"test_my_op\.py already exists"):
        scaffold(render(SOURCE, {"op": "my_op"}, tmp_path), tmp_path)


def test_the_same_file_is_no_change(tmp_path):
    rendering = render(SOURCE, {"op": "my_op"}, tmp_path)
    apply(scaffold(rendering, tmp_path))
    assert not scaffold(rendering, tmp_path)


def test_a_single_file_is_all_that_is_rendered(tmp_path):
    rendering = render(SOURCE, {"op": "my_op", "layout": "single_file"}, tmp_path)
    assert [file.path for file in rendering.files] == [PurePosixPath("my_op.py")]


def test_a_refusal_of_the_template_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="is not a package folder") as error:
        render(SOURCE, {"op": "my_op", "package": "../evil"}, tmp_path)
    assert "for example my_ops" in error.value.hint


def test_no_git_and_no_network_are_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert render(SOURCE, {"op": "my_op"}, tmp_path / "host").files


def test_a_checkout_that_holds_the_template_records_a_dot():
    rendering = render(SOURCE, {"op": "my_op", "package": "reference_ops"}, SOURCE.root)
    answers = next(file for file in rendering.files if file.path.name == "my_op.yml")
    assert b"_src_path: .\n" in answers.content
