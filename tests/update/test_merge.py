"""Files are merged as their two sides changed them, and no line of the owner's is lost."""

from pathlib import PurePosixPath

import pytest

from tilewright.errors import MissingError
from tilewright.update.hunks import Hunk
from tilewright.update.hunks import has_markers
from tilewright.update.hunks import rejected
from tilewright.update.hunks import resolved
from tilewright.update.hunks import with_markers
from tilewright.update.merge import Merged
from tilewright.update.merge import merge
from tilewright.update.sides import Sides

BASE = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"
PATH = PurePosixPath("my_ops/my_op/cutile.py")


def sides(base: bytes | None, owner: bytes | None, template: bytes | None, path: PurePosixPath = PATH) -> Sides:
    return Sides(path=path, base=base, owner=owner, template=template)


def merge_one(base: bytes | None, owner: bytes | None, template: bytes | None) -> Merged:
    [merged] = merge([sides(base, owner, template)])
    return merged


@pytest.mark.parametrize(
    ("base", "owner", "template", "expected"),
    [
        (b"a\n", b"a\n", b"b\n", b"b\n"),  # only the template
        (b"a\n", b"b\n", b"a\n", b"b\n"),  # only the owner
        (b"a\n", b"b\n", b"b\n", b"b\n"),  # both alike
        (None, None, b"b\n", b"b\n"),  # new in the template
        (None, b"b\n", None, b"b\n"),  # the owner's own
        (b"a\n", b"a\n", None, None),  # gone from the template, never edited
        (b"a\n", None, b"b\n", None),  # removed by the owner
    ],
)
def test_where_one_side_changed_a_file_it_is_that_sides(base, owner, template, expected, monkeypatch):
    monkeypatch.setenv("PATH", "")  # without git
    merged = merge_one(base, owner, template)
    assert (resolved(merged.parts, "owner") if merged.parts else None) == expected
    assert not merged.hunks


def test_changes_of_different_lines_are_both_kept():
    merged = merge_one(BASE, BASE.replace(b"one", b"ONE"), BASE.replace(b"eight", b"EIGHT"))
    assert resolved(merged.parts, "owner") == BASE.replace(b"one", b"ONE").replace(b"eight", b"EIGHT")
    assert not merged.hunks


def test_changes_of_one_line_are_a_hunk_with_both():
    merged = merge_one(BASE, BASE.replace(b"three", b"drei"), BASE.replace(b"three", b"trois"))
    assert merged.hunks == (Hunk(owner=b"drei\n", template=b"trois\n", line=3),)
    content = with_markers(merged.parts)
    assert b"two\n<<<<<<< owner\ndrei\n=======\ntrois\n>>>>>>> template\nfour\n" in content
    assert has_markers(content)
    assert not has_markers(BASE)


def test_a_side_can_be_chosen_and_the_other_is_a_patch_of_it():
    merged = merge_one(BASE, BASE.replace(b"three", b"drei"), BASE.replace(b"three", b"trois"))
    assert resolved(merged.parts, "owner") == BASE.replace(b"three", b"drei")
    assert resolved(merged.parts, "template") == BASE.replace(b"three", b"trois")
    assert b"\n-trois\n+drei\n" in rejected("cutile.py", merged.parts)


def test_the_line_of_a_hunk_is_that_of_the_owners_file():
    owner = b"zero\n" + BASE.replace(b"two", b"zwei").replace(b"seven", b"sieben")
    merged = merge_one(BASE, owner, BASE.replace(b"two", b"deux").replace(b"seven", b"sept"))
    lines = owner.splitlines(keepends=True)
    assert [lines[hunk.line - 1] for hunk in merged.hunks] == [b"zwei\n", b"sieben\n"]


def test_text_that_looks_like_markers_is_text():
    fences = b"<" * 30 + b" owner\n" + b"=" * 50 + b"\n" + b">" * 7 + b" template\n"
    base = fences + BASE
    merged = merge_one(base, base.replace(b"three", b"drei"), base.replace(b"three", b"trois"))
    assert resolved(merged.parts, "owner") == base.replace(b"three", b"drei")


def test_an_edited_file_that_is_gone_from_the_template_stays_and_is_a_hunk():
    merged = merge_one(BASE, BASE + b"mine\n", None)
    assert merged.hunks == (Hunk(owner=BASE + b"mine\n", template=None, line=1),)
    assert with_markers(merged.parts) == BASE + b"mine\n"
    assert resolved(merged.parts, "template") is None


def test_an_edit_follows_a_file_that_the_template_renames():
    new = PurePosixPath("tests/benchmark/timing_my_op.py")
    merged = merge(
        [
            sides(BASE, BASE.replace(b"one", b"ONE"), None),
            sides(None, None, BASE.replace(b"eight", b"EIGHT"), new),
        ]
    )
    outcome = {each.path: each.parts and resolved(each.parts, "owner") for each in merged}
    assert outcome == {PATH: None, new: BASE.replace(b"one", b"ONE").replace(b"eight", b"EIGHT")}


def test_a_renamed_file_in_which_both_changed_a_line_is_a_hunk_under_the_new_name():
    new = PurePosixPath("my_ops/my_op/kernel.py")
    merged = {
        each.path: each
        for each in merge(
            [
                sides(BASE, BASE.replace(b"one", b"eins"), None),
                sides(None, None, BASE.replace(b"one", b"un"), new),
            ]
        )
    }
    assert merged[PATH].parts is None
    assert merged[new].hunks == (Hunk(owner=b"eins\n", template=b"un\n", line=1),)
    assert merged[new].sides.owner == BASE.replace(b"one", b"eins")


def test_a_file_that_both_added_is_a_hunk():
    merged = merge_one(None, b"mine\n", b"theirs\n")
    assert merged.hunks == (Hunk(owner=b"mine\n", template=b"theirs\n", line=1),)


def test_line_ends_of_the_owner_are_kept():
    owner = BASE.replace(b"one", b"ONE").replace(b"\n", b"\r\n")
    merged = merge_one(BASE, owner, BASE.replace(b"eight", b"EIGHT"))
    expected = BASE.replace(b"one", b"ONE").replace(b"eight", b"EIGHT").replace(b"\n", b"\r\n")
    assert resolved(merged.parts, "owner") == expected


def test_markers_have_the_line_ends_of_the_owner():
    owner = BASE.replace(b"three", b"drei").replace(b"\n", b"\r\n")
    content = with_markers(merge_one(BASE, owner, BASE.replace(b"three", b"trois")).parts)
    assert b"two\r\n<<<<<<< owner\r\ndrei\r\n=======\r\ntrois\r\n>>>>>>> template\r\nfour\r\n" in content
    assert content.count(b"\n") == content.count(b"\r\n")


@pytest.mark.parametrize("line", [b"<<<<<<< owner", b">>>>>>> template"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_one_marker_that_was_forgotten_is_found(line, end):
    assert has_markers(b"one" + end + line + end + b"two" + end)
    assert not has_markers(b"one" + end + b"# " + line + end)


def test_a_file_in_which_lines_end_both_ways_is_not_made_to_end_in_one():
    owner = b"ONE\r\n" + BASE.removeprefix(b"one\n")
    merged = merge_one(BASE, owner, BASE.replace(b"eight", b"EIGHT"))
    assert resolved(merged.parts, "owner") == owner.replace(b"eight", b"EIGHT")


def test_line_ends_of_windows_in_the_template_are_not_taken_for_the_owners():
    base = BASE.replace(b"\n", b"\r\n")
    merged = merge_one(base, base.replace(b"one", b"ONE"), base.replace(b"eight", b"EIGHT"))
    assert resolved(merged.parts, "owner") == base.replace(b"one", b"ONE").replace(b"eight", b"EIGHT")


def test_a_patch_says_where_a_last_line_has_no_end():
    merged = merge_one(BASE, BASE + b"mine", BASE + b"theirs")
    assert rejected("cutile.py", merged.parts).endswith(
        b"-theirs\n\\ No newline at end of file\n+mine\n\\ No newline at end of file\n"
    )


def test_a_file_that_git_takes_for_binary_is_one_hunk():
    base = BASE.replace(b"four", b"\0")
    owner, template = base.replace(b"one", b"ONE"), base.replace(b"eight", b"EIGHT")
    assert merge_one(base, owner, template).parts == (Hunk(owner=owner, template=template, line=1),)


def test_a_last_line_without_an_end_is_kept():
    merged = merge_one(BASE, BASE + b"mine", BASE + b"theirs")
    assert resolved(merged.parts, "owner") == BASE + b"mine"
    assert b"mine\n=======\n" in with_markers(merged.parts)


def test_without_git_what_both_changed_is_refused(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingError, match="no git to merge") as caught:
        merge_one(BASE, b"mine\n" + BASE, BASE + b"theirs\n")
    assert str(caught.value).count("\n") == 2


def test_settings_of_the_user_change_nothing(monkeypatch, tmp_path):
    (tmp_path / "gitconfig").write_text(
        "[merge]\n\tconflictStyle = diff3\n\trenames = false\n[core]\n\tautocrlf = true\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    merged = merge_one(BASE, BASE.replace(b"three", b"drei"), BASE.replace(b"three", b"trois"))
    assert merged.hunks == (Hunk(owner=b"drei\n", template=b"trois\n", line=3),)
