import pytest

from tilewright.config.versions import is_newer
from tilewright.config.versions import is_same
from tilewright.config.versions import tag

DESCRIBED = "v0.2.0-0-g940b525a1c2d"  # what `git describe --long` prints at the tag v0.2.0


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        ("0.2.0", "v0.2.0"),
        ("v0.2.0", "v0.2.0"),
        (DESCRIBED, "v0.2.0"),
        ("940b525", "940b525"),
        ("v1.0-3-g940b525",) * 2,
    ],
)
def test_the_tag_of_a_recorded_version(recorded, name):
    assert tag(recorded) == name


def test_a_release_described_by_its_commit_is_that_release():
    assert is_same(DESCRIBED, "v0.2.0")
    assert is_newer(DESCRIBED, "v0.1.9")
    assert is_newer("v0.2.1", DESCRIBED)


def test_a_commit_after_a_release_is_no_release():
    assert not is_same("v0.2.0-3-g940b525", "v0.2.0")
