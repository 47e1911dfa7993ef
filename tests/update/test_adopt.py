"""An operator that was written by hand is updated like the others once it is adopted."""

import pytest
import yaml

from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import make_host

RECORD = ".tilewright/ops/normed.yml"


@pytest.fixture
def by_hand(host, pristine):
    """A host with an operator that nothing records, much like a layer_norm with gradient."""
    source, _ = pristine
    answers = {"op": "normed", "family": "row_norm", "variant": "layer_norm", "backward": True, "package": "my_ops"}
    make_host(host, source, answers)
    (host / RECORD).unlink()
    kernel = host / "my_ops/normed/cutile.py"
    kernel.write_text(kernel.read_text() + "# mine\n")
    commit(host)
    return host


def test_the_closest_answers_are_recorded_and_no_file_is_changed(tilewright, by_hand):
    before = contents(by_hand)
    result = tilewright("adopt", "normed", "--family", "row_norm")
    assert result.exit_code == 0, result.output
    recorded = yaml.safe_load((by_hand / RECORD).read_text())
    assert (recorded["variant"], recorded["backward"], recorded["package"]) == ("layer_norm", True, "my_ops")
    assert "variant=layer_norm" in result.stderr
    assert {path for path, content in contents(by_hand).items() if before.get(path) != content} == {RECORD}


def test_files_of_the_host_do_not_count(tilewright, by_hand):
    (by_hand / "my_ops/normed/cutile.py").write_text(
        (by_hand / "my_ops/normed/cutile.py").read_text()[: -len("# mine\n")]
    )
    (by_hand / "Makefile").write_text("all:\n" * 500)
    result = tilewright("adopt", "normed", "--family", "row_norm")
    assert "Closest: 100% of the lines" in result.stderr


def test_what_is_known_can_be_said(tilewright, by_hand):
    tilewright("adopt", "normed", "--family", "row_norm", "--data", "variant=rms_norm")
    assert yaml.safe_load((by_hand / RECORD).read_text())["variant"] == "rms_norm"


def test_one_that_was_made_is_refused(tilewright, host):
    result = tilewright("adopt", "swish", "--family", "elementwise")
    assert result.exit_code == 2
    assert "made with the template already" in result.stderr


def test_one_without_a_kernel_is_refused(tilewright, host):
    result = tilewright("adopt", "absent", "--family", "softmax")
    assert result.exit_code == 2
    assert "there is no my_ops/absent/cutile.py" in result.stderr
    assert result.stderr.count("\n") == 3
