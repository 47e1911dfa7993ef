"""Files of the host are written once and then their owner's, whatever a later template makes of them."""

import pytest

from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import git
from tests.support.releases import make_host
from tests.support.tiny_template import write_release
from tilewright.config import find_host
from tilewright.update import carry_out
from tilewright.update import plan_update

FILES = {"kernel.py": b"kernel\n", "shared.txt": b"first\n"}
SHARED = "my_ops/some_op/shared.txt"


@pytest.fixture
def update(tmp_path):
    """Update a host from one version of the template to another; each is its files, shared and excluded patterns."""

    def run(old, new, *, edit=None):
        root, host = tmp_path / "template", tmp_path / "host"
        for version, (files, shared, excluded) in (("1.0.0", old), ("2.0.0", new)):
            source = write_release(root, version, files)
            questions = root / "template" / "copier.yml"
            text = questions.read_text().replace("[/.tilewright/host.yml]", f"[/.tilewright/host.yml, {shared}]")
            questions.write_text(f"{text}_exclude: [{excluded}]\n")
            commit(root, version)
            git(root, "tag", "-f", f"v{version}")
            if version == "1.0.0":
                make_host(host, source, {"op": "some_op"})
                if edit:
                    edit(host)
                    commit(host)
        carry_out(plan_update(find_host(host), source, ["some_op"]))
        return contents(host)

    return run


NONE = "none"
PATTERN = "/*/*/shared.txt"
NEWER = {**FILES, "shared.txt": b"second\n"}
FEWER = {"kernel.py": b"kernel\n"}


def test_a_shared_file_does_not_follow_the_template(update):
    assert update((FILES, PATTERN, NONE), (NEWER, PATTERN, NONE))[SHARED] == b"first\n"


def test_a_shared_file_that_was_removed_stays_removed(update):
    after = update((FILES, PATTERN, NONE), (NEWER, PATTERN, NONE), edit=lambda host: (host / SHARED).unlink())
    assert SHARED not in after


def test_a_shared_file_that_the_template_drops_stays(update):
    assert update((FILES, PATTERN, NONE), (FEWER, NONE, NONE))[SHARED] == b"first\n"


def test_a_file_that_becomes_shared_stays(update):
    assert update((FILES, NONE, NONE), (NEWER, PATTERN, NONE))[SHARED] == b"first\n"


def test_a_shared_file_that_is_new_is_written(update):
    assert update((FEWER, NONE, NONE), (NEWER, PATTERN, NONE))[SHARED] == b"second\n"


def test_a_file_of_the_operator_that_the_template_drops_goes(update):
    assert SHARED not in update((FILES, NONE, NONE), (FEWER, NONE, NONE))


def test_a_file_that_the_template_drops_and_excludes_stays(update):
    assert update((FILES, NONE, NONE), (FEWER, NONE, "shared.txt"))[SHARED] == b"first\n"
