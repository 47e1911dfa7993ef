"""The changelog tells what came between two versions."""

from tilewright.update.changelog import Release
from tilewright.update.changelog import releases_between

TEXT = """\
# Changelog

## [Unreleased]

- Not yet.

## [0.3.0] - 2027-03-01

### Changed

- Faster, in
  two lines.
- Safer.

## [0.2.0] - 2027-02-01

- Mended.

## [0.1.0] - 2027-01-01

- First.
"""


def test_versions_after_the_old_one_up_to_the_new_one(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text(TEXT)
    assert releases_between(tmp_path / "CHANGELOG.md", "v0.1.0", "v0.3.0") == (
        Release(version="0.3.0", entries=("Not yet.", "Faster, in two lines.", "Safer.")),
        Release(version="0.2.0", entries=("Mended.",)),
    )


def test_what_is_not_released_counts_as_the_next_version(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text(TEXT)
    assert releases_between(tmp_path / "CHANGELOG.md", "v0.3.0", "v0.4.0") == (
        Release(version="0.4.0", entries=("Not yet.",)),
    )


def test_later_versions_and_what_is_not_released_are_no_part_of_an_earlier_one(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text(TEXT)
    assert releases_between(tmp_path / "CHANGELOG.md", "v0.1.0", "v0.2.0") == (
        Release(version="0.2.0", entries=("Mended.",)),
    )


def test_without_a_changelog_there_is_nothing_to_tell(tmp_path):
    assert releases_between(tmp_path / "CHANGELOG.md", "v0.1.0", "v0.3.0") == ()
