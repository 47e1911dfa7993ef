"""Hosts of every released template, with edits as people make them, are updated to the template as it is now."""

import ast
import re
import shutil

import pytest

from tests.support import releases
from tests.support.releases import NEXT
from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import git
from tests.support.tilegym_checkout import pristine_tilegym_checkout
from tilewright.changes import apply
from tilewright.cli.plans import plan_new
from tilewright.config import find_host
from tilewright.render import Batch
from tilewright.render import Source
from tilewright.update import carry_out
from tilewright.update import plan_update
from tilewright.update.templates import RELEASES
from tilewright.update.templates import Templates

__all__ = ["pristine_tilegym_checkout"]

RELEASED = sorted(
    (path.name.removesuffix(".tar.xz") for path in RELEASES.glob("*.tar.xz")),
    key=lambda version: [int(number) for number in version.removeprefix("v").split(".")],
)
OPERATORS = (
    {"op": "swish", "formula": "x * sigmoid(beta * x), beta=1.0"},
    {"op": "gated_mul", "family": "gated", "backward": True},
    {"op": "total", "family": "reduction"},
    {"op": "log_probs", "family": "softmax", "variant": "log_softmax"},
    {"op": "normed", "family": "row_norm", "backward": True},
    {"op": "product", "family": "matmul", "bias": True, "epilogue": "relu(acc)"},
)
# What people do to a file, by the end of its name; None is to remove it.
EDITS = {
    "cutile.py": [
        lambda text: re.sub(r"\A.*", '"""The kernel as this project wants it."""', text),
        lambda text: text.replace("@ct.kernel", "def _mine(t):\n    return t\n\n\n@ct.kernel", 1),
        lambda text: text + "\n\n# Mine, at the end\n",
    ],
    "interface.py": [
        lambda text: text.replace("**kwargs: Options of one backend.", "**kwargs: Options of my backend."),
        lambda text: text.replace("\n", "\r\n"),
    ],
    "tests/ops/test_": [
        lambda text: text.replace('_backends = ["cutile"]', '_backends = ["cutile"]\n    _mine = [(3, 5)]'),
        lambda text: text + "\n\n# Mine, at the end\n",
    ],
    "bench_": [lambda text: None],
}


def parameters(*versions):
    """Parameters, slow but for the first and the last release: there is one more with each release."""
    ends = RELEASED[0], RELEASED[-1]
    return [pytest.param(each, marks=() if each.startswith(ends) else pytest.mark.slow) for each in versions]


@pytest.fixture(scope="module")
def current(tmp_path_factory):
    """The template of the working tree, as the next release; without history."""
    root = tmp_path_factory.mktemp("current") / "template"
    source = releases.check_out_template(root)
    releases.release(source, NEXT, {})
    shutil.rmtree(root / ".git")
    return source


@pytest.fixture(scope="module")
def batch(current):
    """The same, to render from."""
    return Batch(current.template)


@pytest.fixture(scope="module")
def released(current):
    """The template of a release, as somebody who has only the package gets it."""
    with Templates(Source(root=current.root, recorded=None)) as templates:
        yield lambda version: Source(root=templates.batch(version, "", current.root).folder.parent, recorded=None)


def edited(path, content):
    """A file after the edits of its owner."""
    for part, edits in EDITS.items():
        for edit in edits if part in path else ():
            before, content = content, edit(content)
            assert content != before, f"{path} has nothing to edit"
    return content


def owned(batch, host, source, answers):
    """The files of an operator, without its record, as a template makes them."""
    made = batch.render({**answers, "package": "my_ops"}, host, source=str(source.root), recorded=True).files
    return {str(file.path): file.content.decode() for file in made if not file.shared and file.path.suffix == ".py"}


@pytest.mark.parametrize("version", parameters(*RELEASED))
def test_typical_edits_survive_and_all_else_is_as_the_template_has_it_now(current, batch, released, tmp_path, version):
    source, host = released(version), tmp_path / "host"
    releases.make_host(host, source, *OPERATORS)
    old, written = Batch(source.template), {}
    for answers in OPERATORS:
        for path, content in owned(old, host, source, answers).items():
            mine = edited(path, content)
            (host / path).unlink() if mine is None else (host / path).write_bytes(mine.encode())
            written[path] = set((mine or "").splitlines()) - set(content.splitlines())
        record = host / f".tilewright/ops/{answers['op']}.yml"
        record.write_text(re.sub("(?m)^_commit: .*", f"_commit: {version}", record.read_text()) + "# Ask Ada first\n")
    commit(host)
    plan = plan_update(find_host(host), current, [answers["op"] for answers in OPERATORS])
    conflicts = {str(conflict.path) for conflict in plan.conflicts}  # where the template changed the same place since
    assert len(conflicts) < len(OPERATORS)
    carry_out(plan)
    after = contents(host)
    for answers in OPERATORS:
        for path, content in owned(batch, host, source, answers).items():
            if path in conflicts:
                assert written[path] <= set(after[path].decode().splitlines()), path
                continue
            mine = edited(path, content)
            assert after.get(path) == (None if mine is None else mine.encode()), path
            ast.parse(mine or "")
        assert after[f".tilewright/ops/{answers['op']}.yml"].endswith(b"# Ask Ada first\n")
    assert set(git(host, "diff", "--name-only").split()) == conflicts  # all else is staged


@pytest.mark.parametrize("recorded", parameters(*RELEASED, *(f"{version}-0-g0123456789ab" for version in RELEASED)))
def test_neither_git_nor_a_tag_is_needed(current, batch, released, tmp_path, monkeypatch, recorded):
    source, host = released(recorded.partition("-")[0]), tmp_path / "host"
    releases.make_host(host, source, OPERATORS[0])
    record = host / ".tilewright/ops/swish.yml"
    record.write_text(re.sub("(?m)^_commit: .*", f"_commit: {recorded}", record.read_text()))
    monkeypatch.setenv("PATH", "")
    carry_out(plan_update(find_host(host), current, ["swish"]))
    expected = owned(batch, host, source, OPERATORS[0])
    assert {path: (host / path).read_text() for path in expected} == expected
    assert re.search(rf"(?m)^_commit: v{NEXT}-0-g[0-9a-f]+$", record.read_text())  # as without tags `copier copy` says


@pytest.mark.parametrize("version", parameters(*RELEASED))
def test_checkouts_of_tilegym_follow(current, released, pristine_tilegym_checkout, tmp_path, version):
    root = shutil.copytree(pristine_tilegym_checkout, tmp_path / "TileGym", symlinks=True)
    fresh = shutil.copytree(pristine_tilegym_checkout, tmp_path / "fresh" / "TileGym", symlinks=True)
    answers = {"op": "my_probs", "family": "softmax", "layout": "tilegym"}
    apply(plan_new(released(version), answers, root))
    apply(plan_new(current, answers, fresh))
    kernel = "src/tilegym/ops/cutile/my_probs.py"
    with (root / kernel).open("a") as file:
        file.write("\n\n# Mine\n")
    commit(root)
    plan = plan_update(find_host(root), current, ["my_probs"])
    assert plan.conflicts == ()
    carry_out(plan)
    expected = contents(fresh) | {kernel: (fresh / kernel).read_bytes() + b"\n\n# Mine\n"}
    ours = contents(root)
    assert [path for path in expected if path.endswith(".py") and ours[path] != expected[path]] == []


def test_there_is_a_release():
    assert RELEASED, f"no release is packed in {RELEASES}"
