"""Files that an owner has taken over are left alone, and said to be."""

import json

import pytest
import yaml

from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import own_version

KERNEL = "my_ops/swish/cutile.py"
RECORD = ".tilewright/detached/swish.yml"


def test_a_detached_file_receives_no_changes(tilewright, host):
    assert tilewright("detach", "swish", "kernel").exit_code == 0
    commit(host)
    before = contents(host)
    result = tilewright("update", "--all")
    assert result.exit_code == 0
    assert "swish: left alone, since it is yours: kernel" in result.stderr
    after = contents(host)
    assert after[KERNEL] == before[KERNEL]
    assert after["my_ops/swish/interface.py"] != before["my_ops/swish/interface.py"]
    assert after["my_ops/total/cutile.py"] != before["my_ops/total/cutile.py"]


def test_a_detached_file_may_be_dirty(tilewright, host):
    tilewright("detach", "swish", "kernel")
    commit(host)
    (host / KERNEL).write_text("all my own\n")
    assert tilewright("update", "--all").exit_code == 0
    assert (host / KERNEL).read_text() == "all my own\n"


def test_status_says_so(tilewright, host):
    tilewright("detach", "swish", "kernel", "tests")
    lines = tilewright("status").stdout.splitlines()
    assert "swish kernel: detached, no update changes it" in lines
    swish, total = json.loads(tilewright("status", "--json").stdout)["operators"]
    assert (swish["detached"], total["detached"]) == (["kernel", "tests"], [])


def test_the_record_says_what_the_step_was_made_from(tilewright, host):
    tilewright("detach", "swish", "kernel")
    kernel = yaml.safe_load((host / RECORD).read_text())["kernel"]
    assert (kernel["_commit"], kernel["formula"]) == (f"v{own_version()}", "x * sigmoid(x)")
    assert "Nothing to do" in tilewright("detach", "swish", "kernel").stderr


def test_a_link_in_the_place_of_a_detached_file_is_left_alone(tilewright, host):
    (host / "kernel.py").write_text("mine\n")
    (host / KERNEL).unlink()
    (host / KERNEL).symlink_to("../../kernel.py")
    tilewright("detach", "swish", "kernel")
    commit(host)
    result = tilewright("update", "swish")
    assert result.exit_code == 0, result.output
    assert (host / "kernel.py").read_text() == "mine\n"


def test_a_step_without_a_file_of_its_own_is_refused(tilewright, host):
    result = tilewright("detach", "swish", "verify")
    assert result.exit_code == 2
    assert "expected one of benchmark, kernel, registration, stub, tests" in result.stderr


@pytest.mark.parametrize("text", ["- kernel\n", "kernel: {formula: x}\n", "kernel: 3\n", "kernel: [\n", ""])
def test_a_record_that_is_none_is_refused(tilewright, host, text):
    (host / ".tilewright/detached").mkdir()
    (host / RECORD).write_text(text)
    result = tilewright("update", "--all")
    assert result.exit_code == 2
    assert "is not a mapping of steps to what they were made from" in result.stderr
    assert result.stderr.count("\n") == 3


def test_the_record_goes_with_the_operator(tilewright, host):
    tilewright("detach", "swish", "kernel")
    assert tilewright("remove", "swish", "--force").exit_code == 0
    assert not (host / ".tilewright/detached").exists()
