"""`tilewright new` adds an operator, or says what is wrong and writes nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def recorded(root: Path, op: str) -> dict:
    return yaml.safe_load((root / ".tilewright" / "ops" / f"{op}.yml").read_text())


def test_an_empty_folder_becomes_a_host(tilewright, here):
    result = tilewright("new", "my_op")
    assert result.exit_code == 0, result.stderr
    assert {"my_ops/my_op/cutile.py", "tests/ops/test_my_op.py", "Makefile", ".tilewright/host.yml"} <= files(here)
    assert "my_op/" in result.stdout
    assert "tilewright verify my_op" in result.stderr


def test_a_subfolder_of_a_host_will_do(tilewright, here, monkeypatch):
    tilewright("new", "first", "--package", "src/own")
    monkeypatch.chdir(here / "src" / "own" / "first")
    assert tilewright("new", "second").exit_code == 0
    assert (here / "src" / "own" / "second" / "cutile.py").exists()
    assert recorded(here, "second")["package"] == "src/own"


def test_into_names_another_folder(tilewright, here):
    assert tilewright("new", "my_op", "--into", "a/b").exit_code == 0
    assert (here / "a" / "b" / "my_ops" / "my_op").is_dir()


def test_options_become_answers(tilewright, here):
    options = ["--formula", "x * a, a=2.0", "--backward", "--dtypes", "f32,torch.bfloat16"]
    assert tilewright("new", "my_op", *options, "--skip", "benchmark=no baseline").exit_code == 0
    answers = recorded(here, "my_op")
    assert answers["formula"] == "x * a, a=2.0"
    assert answers["grad_formula"] == "grad * a"
    assert answers["dtypes"] == ["float32", "bfloat16"]
    assert answers["skip"] == {"benchmark": "no baseline"}


def test_data_are_answers_too(tilewright, here):
    assert tilewright("new", "my_op", "-d", "formula=x * y", "-d", "dtypes=[float16]").exit_code == 0
    assert (recorded(here, "my_op")["formula"], recorded(here, "my_op")["dtypes"]) == ("x * y", ["float16"])


@pytest.mark.parametrize("option", ["--dry-run", "-n", "--diff", "--check"])
def test_nothing_is_written_when_only_shown(tilewright, here, option):
    result = tilewright("new", "my_op", option)
    assert files(here) == set()
    assert list(here.iterdir()) == []
    assert result.exit_code == (1 if option == "--check" else 0)
    assert "nothing was" in result.stderr


def test_a_diff_can_be_applied(tilewright, here):
    diff = tilewright("new", "my_op", "--diff").stdout
    subprocess.run(["git", "apply", "-"], input=diff, text=True, check=True, cwd=here)
    applied = {path: (here / path).read_bytes() for path in files(here)}
    assert "my_ops/my_op/cutile.py" in applied
    for path in applied:
        (here / path).unlink()
    tilewright("new", "my_op")
    assert {path for path in files(here) if (here / path).read_bytes()} == set(applied)
    assert all((here / path).read_bytes() == content for path, content in applied.items())


def test_json_is_all_that_is_printed(tilewright, here):
    result = tilewright("new", "my_op", "--json")
    document = json.loads(result.stdout)
    assert result.stderr == ""
    assert document["operator"] == "my_op"
    assert document["written"] is True
    assert {file["path"]: file["kind"] for file in document["files"]}["Makefile"] == "create"
    assert document["next"][0] == "tilewright verify my_op"


def test_a_single_file_is_all_that_is_written(tilewright, here):
    assert tilewright("new", "my_op", "--single-file").exit_code == 0
    assert files(here) == {"my_op.py"}


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["../evil"], "is not an operator name"),
        ([""], "is not an operator name"),
        (["gelu\n"], "is not an operator name"),
        (["class"], "is a Python keyword"),
        (["con"], "is a device name"),
        (["ops"], "uses itself"),
        ([], "no name given"),
        (["my_op", "--family", "softmx"], "did you mean softmax?"),
        (["my_op", "--dtypes", "f8"], "is not a dtype"),
        (["my_op", "-d", "famly=softmax"], "did you mean family?"),
        (["my_op", "--formula", "x * sigmod(x)"], "did you mean sigmoid?"),
        (["my_op", "--formula", "x / 0"], "divides by a literal zero"),
        (["my_op", "--formula", "1 + 2"], "has no tensor in it"),
        (["my_op", "--formula", "x +"], "is not an expression"),
        (["my_op", "--precision", "tf32"], "precision does not apply to the family elementwise"),
        (["my_op", "--placement", "main"], "placement does not apply to the layout standalone"),
        (["my_op", "--package", "../evil"], "is not a package folder"),
        (["my_op", "--skip", "bench=x"], "did you mean benchmark?"),
        (["my_op", "--layout", "stub"], "is no layout"),
        (["my_op", "--single-file", "--layout", "tilegym"], "with --single-file, tilegym"),
        (["my_op", "--single-file", "--skip", "tests=why"], "skip does not apply to the layout single_file"),
        (["my_op", "-d", "op=other"], "with --data, other"),
        (["copy", "--single-file"], "would hide from PyTorch"),
        (["my_op", "--package", "json"], "would hide"),
        (["my_op", "--package", "con"], "is a device name"),
        (["my_op", "--package", "a" * 300], "is not a package folder"),
        (["my_op", "--variant", "rms_norm"], "--family row_norm"),
        (["my_op", "--into", __file__], "is a file"),
        (["my_op", "--into", "/proc/none"], "cannot be written"),
        (["my_op", "--into", Path(__file__).parents[2] / "template" / "standalone"], "is inside the template"),
        (["my_op", "--layout", "tilegym"], "src/tilegym/ops/ops.py"),
        (["my_ops"], "is the package itself"),
    ],
)
def test_bad_input_is_a_message_and_nothing_else(tilewright, here, arguments, what):
    result = tilewright("new", *arguments)
    assert result.exit_code == 2
    assert what in result.stderr
    assert len(result.stderr.rstrip("\n").splitlines()) <= 3
    assert "Traceback" not in result.stderr
    assert list(here.iterdir()) == []


def test_an_operator_is_not_made_twice(tilewright, here):
    tilewright("new", "my_op")
    before = {path: (here / path).stat().st_mtime_ns for path in files(here)}
    result = tilewright("new", "my_op")
    assert result.exit_code == 2
    assert "operator my_op already exists" in result.stderr
    assert {path: (here / path).stat().st_mtime_ns for path in files(here)} == before


def test_a_host_has_one_package(tilewright, here):
    tilewright("new", "my_op")
    result = tilewright("new", "other", "--package", "elsewhere")
    assert result.exit_code == 2
    assert "has the package my_ops" in result.stderr


def new(here: Path, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "tilewright", "new", *arguments],
        cwd=here,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_two_at_once_for_different_operators(here):
    children = [new(here, "first"), new(here, "second")]
    assert [child.wait(60) for child in children] == [0, 0]
    assert {"my_ops/first/cutile.py", "my_ops/second/cutile.py"} <= files(here)
    assert not (here / ".tilewright" / ".journal").exists()


def test_two_at_once_for_the_same_operator(here):
    children = [new(here, "my_op"), new(here, "my_op")]
    assert sorted(child.wait(60) for child in children) == [0, 2]
    assert sum("operator my_op already exists" in child.stderr.read() for child in children) == 1


def test_in_tilegym_the_operator_is_registered(tilewright, tilegym_checkout, monkeypatch):
    monkeypatch.chdir(tilegym_checkout / "src" / "tilegym")
    result = tilewright("new", "my_op", "--json")
    assert result.exit_code == 0, result.stderr
    assert {file["path"]: file["kind"] for file in json.loads(result.stdout)["files"]} == {
        ".tilewright/host.yml": "create",
        ".tilewright/ops/my_op.yml": "create",
        "src/tilegym/ops/cutile/__init__.py": "change",
        "src/tilegym/ops/cutile/my_op.py": "create",
        "src/tilegym/ops/ops.py": "change",
        "tests/benchmark/bench_my_op.py": "create",
        "tests/ops/test_my_op.py": "create",
    }
    assert '@dispatch("my_op")' in (tilegym_checkout / "src/tilegym/ops/ops.py").read_text()


def test_a_folder_that_was_deleted_is_a_message(tilewright, here):
    here.rmdir()
    result = tilewright("new", "my_op")
    assert (result.exit_code, "does not exist any more" in result.stderr) == (2, True)


def test_a_loop_of_links_is_a_message(tilewright, here):
    (here / "loop").symlink_to("loop")
    result = tilewright("new", "my_op", "--into", "loop")
    assert (result.exit_code, "leads nowhere" in result.stderr) == (2, True)


def test_a_link_that_leads_nowhere_is_not_overwritten(tilewright, here):
    (here / "tests" / "ops").mkdir(parents=True)
    (here / "tests" / "ops" / "test_my_op.py").symlink_to("/nowhere")
    result = tilewright("new", "my_op")
    assert (result.exit_code, "test_my_op.py already exists" in result.stderr) == (2, True)
    assert files(here) == set()


def test_a_detected_layout_can_be_overridden(tilewright, tilegym_checkout, monkeypatch):
    monkeypatch.chdir(tilegym_checkout)
    assert tilewright("new", "my_op", "--layout", "standalone").exit_code == 0
    assert (tilegym_checkout / "my_ops" / "my_op" / "cutile.py").exists()


@pytest.mark.parametrize("name", ["softmax", "gelu", "fmha", "utils"])
def test_a_name_that_tilegym_has_is_refused(tilewright, tilegym_checkout, monkeypatch, name):
    monkeypatch.chdir(tilegym_checkout)
    before = files(tilegym_checkout)
    result = tilewright("new", name)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) <= 3
    assert files(tilegym_checkout) == before


def test_an_ops_file_of_another_shape_is_refused(tilewright, tilegym_checkout, monkeypatch):
    monkeypatch.chdir(tilegym_checkout)
    (tilegym_checkout / "src/tilegym/ops/ops.py").write_text("def broken(:\n")
    before = files(tilegym_checkout)
    result = tilewright("new", "my_op")
    assert result.exit_code == 2, result.stderr
    assert files(tilegym_checkout) == before
