"""Hosts of every released template, with edits as people make them, are updated to the template as it is now."""

import ast
import shutil

import pytest

from tests.support import releases
from tests.support.releases import NEXT
from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import git
from tilewright.config import find_host
from tilewright.render import Batch
from tilewright.render import Source
from tilewright.update import carry_out
from tilewright.update import plan_update
from tilewright.update.templates import RELEASES
from tilewright.update.templates import Templates

VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in RELEASES.glob("*.tar.xz"))
OPERATORS = (
    {"op": "swish", "formula": "x * sigmoid(beta * x), beta=1.0", "package": "my_ops"},
    {"op": "gated_mul", "family": "gated", "package": "my_ops", "backward": True},
    {"op": "total", "family": "reduction", "package": "my_ops"},
    {"op": "log_probs", "family": "softmax", "variant": "log_softmax", "package": "my_ops"},
    {"op": "normed", "family": "row_norm", "package": "my_ops", "backward": True},
    {"op": "product", "family": "matmul", "package": "my_ops", "bias": True, "epilogue": "relu(acc)"},
)


@pytest.fixture(scope="module")
def current(tmp_path_factory):
    """The template of the working tree, as the next release; without history."""
    root = tmp_path_factory.mktemp("current") / "template"
    source = releases.check_out_template(root)
    releases.release(source, NEXT, {})
    shutil.rmtree(root / ".git")
    return source


@pytest.fixture(scope="module")
def unpacked(current):
    """The templates that were released."""
    with Templates(Source(root=current.root, recorded=None)) as templates:
        yield templates


@pytest.mark.parametrize("version", VERSIONS)
def test_edits_at_the_ends_of_files_and_removed_files_survive(current, unpacked, tmp_path, version):
    folder = unpacked.batch(version, "", tmp_path).folder.parent
    host = tmp_path / "host"
    releases.make_host(host, Source(root=folder, recorded=None), *OPERATORS)
    for answers in OPERATORS:
        for path in (f"my_ops/{answers['op']}/cutile.py", f"tests/ops/test_{answers['op']}.py"):
            with (host / path).open("a") as file:
                file.write(f"\n\n# Mine: {path}\n")
        (host / f"tests/benchmark/bench_{answers['op']}.py").unlink()
    commit(host)
    plan = plan_update(find_host(host), current, [answers["op"] for answers in OPERATORS])
    assert plan.conflicts == ()
    carry_out(plan)
    after = contents(host)
    batch = Batch(current.template)
    for answers in OPERATORS:
        for file in batch.render(answers, host, source=str(folder), recorded=True).files:
            path = str(file.path)
            if path.startswith("tests/benchmark/"):
                assert path not in after
            elif path.endswith(("cutile.py", f"test_{answers['op']}.py")):
                assert after[path] == file.content + f"\n\n# Mine: {path}\n".encode()
            elif not file.shared:
                assert after[path] == file.content
            if path.endswith(".py") and path in after:
                ast.parse(after[path])
    assert git(host, "diff", "--name-only") == ""


def test_there_is_a_release():
    assert VERSIONS, f"no release is packed in {RELEASES}"
