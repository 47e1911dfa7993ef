"""What works with copier alone, without this package: copy, check-update, update, recopy, from both entries."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from copier import run_copy

from .conftest import ROOT
from .conftest import commit_all
from .conftest import git
from .conftest import version

ENTRIES = ["template", "."]  # the folder in a checkout, and the checkout


def copier(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "copier", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def copy(entry: str, checkout: Path, host: Path, op: str, *data: str) -> None:
    options = [word for item in (f"op={op}", *data) for word in ("--data", item)]
    done = copier("copy", "-q", entry, str(host), *options, folder=checkout)
    assert done.returncode == 0, done.stderr


def files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("entry", ENTRIES)
def test_copy_makes_a_complete_host(entry: str, checkout: Path, host: Path) -> None:
    copy(entry, checkout, host, "my_op")
    assert set(files(host)) == {
        ".gitignore",
        ".tilewright/host.yml",
        ".tilewright/ops/my_op.yml",
        "Makefile",
        "my_ops/__init__.py",
        "my_ops/backend.py",
        "my_ops/my_op/__init__.py",
        "my_ops/my_op/cutile.py",
        "my_ops/my_op/interface.py",
        "pyproject.toml",
        "tests/__init__.py",
        "tests/benchmark/bench_my_op.py",
        "tests/common.py",
        "tests/conftest.py",
        "tests/ops/__init__.py",
        "tests/ops/test_my_op.py",
    }


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_second_operator_adds_only_its_own_files(entry: str, checkout: Path, host: Path) -> None:
    copy(entry, checkout, host, "my_op")
    before = files(host)
    copy(entry, checkout, host, "other")
    after = files(host)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {
        ".tilewright/ops/other.yml",
        "my_ops/other/__init__.py",
        "my_ops/other/cutile.py",
        "my_ops/other/interface.py",
        "tests/benchmark/bench_other.py",
        "tests/ops/test_other.py",
    }


def test_both_entries_render_the_same_files(checkout: Path, tmp_path: Path) -> None:
    for entry, name in zip(ENTRIES, ("a", "b"), strict=True):
        copy(entry, checkout, tmp_path / name, "my_op")
    assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_answers_record_the_checkout_and_the_release(entry: str, checkout: Path, host: Path) -> None:
    copy(entry, checkout, host, "my_op")
    answers = yaml.safe_load((host / ".tilewright/ops/my_op.yml").read_text())
    assert answers["_src_path"] == str(checkout)
    assert answers["_commit"] == f"v{version()}"


@pytest.mark.parametrize("entry", ENTRIES)
def test_update_brings_the_new_release_and_keeps_an_edit(entry, checkout, host, release) -> None:
    copy(entry, checkout, host, "my_op")
    copy(entry, checkout, host, "other")
    git(host, "init", "-q")
    kernel = host / "my_ops/my_op/cutile.py"
    kernel.write_text(kernel.read_text() + "\n# tuned by hand\n")
    commit_all(host)
    other = files(host / "my_ops/other")

    release("standalone/{{ package }}/{{ op }}/cutile.py.jinja", '"""cuTile backend of', '"""The cuTile backend of')
    answers = ".tilewright/ops/my_op.yml"
    assert "9.0.0" in copier("check-update", "-a", answers, folder=host).stdout
    done = copier("update", "-a", answers, folder=host)

    assert done.returncode == 0, done.stderr
    assert kernel.read_text().startswith('"""The cuTile backend of my_op')
    assert kernel.read_text().endswith("# tuned by hand\n")
    assert yaml.safe_load((host / answers).read_text())["_commit"] == "v9.0.0"
    assert files(host / "my_ops/other") == other
    assert git(host, "diff", "--name-only").split() == [answers, "my_ops/my_op/cutile.py"]


@pytest.mark.parametrize("entry", ENTRIES)
def test_update_works_from_a_clone_without_tags(entry, checkout, host) -> None:
    git(checkout, "tag", "-d", f"v{version()}")
    questions = checkout / "template/copier.yml"
    commit = re.search(r'template_commit: .*default: "(\w+)"', questions.read_text())[1]
    questions.write_text(questions.read_text().replace(commit, git(checkout, "rev-parse", "HEAD").strip()))
    commit_all(checkout)
    copy(entry, checkout, host, "my_op")
    git(host, "init", "-q")
    kernel = host / "my_ops/my_op/cutile.py"
    kernel.write_text(kernel.read_text() + "\n# tuned by hand\n")
    commit_all(host)

    template = checkout / "template/standalone/{{ package }}/{{ op }}/cutile.py.jinja"
    template.write_text(template.read_text().replace('"""cuTile backend of', '"""The cuTile backend of'))
    commit_all(checkout)
    done = copier("update", "-a", ".tilewright/ops/my_op.yml", folder=host)

    assert done.returncode == 0, done.stderr
    assert kernel.read_text().startswith('"""The cuTile backend of my_op')
    assert kernel.read_text().endswith("# tuned by hand\n")


def test_the_template_names_a_commit_of_its_history() -> None:
    recorded = yaml.safe_load((ROOT / "template/copier.yml").read_text())["template_commit"]["default"]
    if git(ROOT, "rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("a shallow clone has no history")
    assert git(ROOT, "merge-base", recorded, "HEAD").startswith(recorded)


def test_a_conflict_leaves_markers_and_says_so(checkout, host, release) -> None:
    copy(".", checkout, host, "my_op")
    git(host, "init", "-q")
    kernel = host / "my_ops/my_op/cutile.py"
    kernel.write_text(kernel.read_text().replace('"""cuTile backend of my_op."""', '"""Mine."""'))
    commit_all(host)
    release("standalone/{{ package }}/{{ op }}/cutile.py.jinja", '"""cuTile backend of', '"""The cuTile backend of')
    done = copier("update", "-a", ".tilewright/ops/my_op.yml", folder=host)
    assert "conflict markers" in done.stderr
    assert '"""Mine."""' in kernel.read_text()
    assert "<<<<<<< before updating" in kernel.read_text()
    assert "UU my_ops/my_op/cutile.py" in git(host, "status", "--short")


def test_recopy_restores_the_render(checkout: Path, host: Path) -> None:
    copy(".", checkout, host, "my_op")
    rendered = files(host)
    (host / "my_ops/my_op/cutile.py").write_text("lost\n")
    done = copier("recopy", "-q", "-f", "-a", ".tilewright/ops/my_op.yml", folder=host)
    assert done.returncode == 0, done.stderr
    assert files(host) == rendered


def test_files_of_the_host_are_left_alone(checkout: Path, host: Path) -> None:
    host.mkdir()
    (host / "Makefile").write_text("all:\n\techo mine\n")
    (host / "pyproject.toml").write_text("[project]\nname = 'mine'\n")
    copy("template", checkout, host, "my_op")
    assert (host / "Makefile").read_text() == "all:\n\techo mine\n"
    assert (host / "pyproject.toml").read_text() == "[project]\nname = 'mine'\n"


def test_a_checkout_is_a_host_of_its_own(checkout: Path) -> None:
    (checkout / ".tilewright").mkdir()
    (checkout / ".tilewright/host.yml").write_text("layout: standalone\npackage: reference_ops\n")
    copy("template", checkout, Path("."), "my_op")
    assert (checkout / "reference_ops/my_op/cutile.py").exists()
    assert yaml.safe_load((checkout / ".tilewright/ops/my_op.yml").read_text())["_src_path"] == "."


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "class",
        "My-Op",
        "",
        "öp",
        "1a",
        "_a",
        "a__b",
        "a b",
        "ab\n",
        "con",
        "a" * 61,
        "backend",
        "ops",
        "{{ 7*7 }}",
    ],
)
def test_a_bad_name_is_refused_and_nothing_written(name: str, checkout: Path, host: Path) -> None:
    with pytest.raises(ValueError, match="Validation error for question 'op'"):
        run_copy(str(checkout / "template"), host, data={"op": name}, quiet=True)
    assert not host.exists()


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("x +", "ends where a name"),
        ("foo(x)", "calls foo, which is not known; the functions are"),
        ("1.0", "has no tensor in it"),
        ("x / 0", "divides by a literal zero"),
        ("x / 0.0", "divides by a literal zero"),
        ("import os", "where an operator is expected"),
        ("x if y else z", "where an operator is expected"),
        ("x.numel()", "where an operator is expected"),
        ("sigmoid(x, x)", "gives sigmoid 2 arguments; it takes 1"),
        ("(x", "lacks a closing parenthesis"),
        ("x > 0", "outside where"),
        ("a + b + c + d + e", "at most 4"),
        ("alpha=1.0", "has no result"),
        ("x; y", "more than one result"),
        ("t * x; t = x + 1", "uses t before it is defined"),
        ("out * x", "reserved name out"),
    ],
)
def test_a_formula_outside_the_grammar_is_refused(formula: str, message: str, checkout: Path, host: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        run_copy(str(checkout / "template"), host, data={"op": "my_op", "formula": formula}, quiet=True)
    assert not host.exists()


def test_an_operator_that_exists_is_not_written_over(checkout: Path, host: Path) -> None:
    copy("template", checkout, host, "my_op")
    before = files(host)
    done = copier("copy", "template", str(host), "--data", "op=my_op", folder=checkout)
    assert done.returncode == 1
    assert "operator my_op already exists here" in done.stderr
    assert files(host) == before


def test_a_new_formula_does_not_keep_the_gradient_of_the_old(checkout: Path, host: Path) -> None:
    copy(".", checkout, host, "my_op", "formula=x * y", "grad_formula=grad * y; grad * x")
    git(host, "init", "-q")
    commit_all(host)
    answers = ".tilewright/ops/my_op.yml"
    update = ["update", "-a", answers, "--vcs-ref", f"v{version()}", "--data", "formula=x + y"]
    done = copier(*update, folder=host)
    assert done.returncode == 0, done.stderr
    assert "It has no gradient" in done.stderr
    assert yaml.safe_load((host / answers).read_text())["grad_formula"] == ""
    assert "backward" not in (host / "my_ops/my_op/cutile.py").read_text()

    git(host, "reset", "-q", "--hard")
    done = copier(*update, "--data", "grad_formula=grad; grad", folder=host)
    assert done.returncode == 0, done.stderr
    assert "backward" in (host / "my_ops/my_op/cutile.py").read_text()
