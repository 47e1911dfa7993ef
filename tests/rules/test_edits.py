"""Fixes: applied together where they can be, kept only if they help."""

from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tilewright.rules.edits import apply
from tilewright.rules.edits import fix
from tilewright.rules.finding import Edit
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity


def edit(line: int, column: int, end_column: int, text: str) -> Edit:
    return Edit(line=line, column=column, end_line=line, end_column=end_column, text=text)


def finder(word: str, replacement: str, code: str = "TW999") -> Callable[[str], list[Finding]]:
    """Finds a word wherever it is, and replaces it."""

    def check(text: str) -> list[Finding]:
        found = []
        for number, line in enumerate(text.split("\n"), start=1):
            start = line.find(word)
            while start >= 0:
                end = start + len(word)
                change = edit(number, start + 1, end + 1, replacement)
                found.append(
                    Finding(
                        code=code,
                        message=f"{word} {number} {start}",
                        path=Path("a.py"),
                        line=number,
                        column=start + 1,
                        end_line=number,
                        end_column=end + 1,
                        severity=Severity.ERROR,
                        fix=Fix("replace", (change,)),
                    )
                )
                start = line.find(word, end)
        return found

    return check


def test_several_edits_of_one_text() -> None:
    assert apply("ab = 1\r\ncd = 2\n", [edit(1, 1, 3, "x"), edit(2, 3, 3, "e"), edit(2, 6, 7, "33")]) == (
        "x = 1\r\ncde = 33\n"
    )


@given(st.text("abé\n", max_size=30), st.integers(0, 30), st.integers(0, 30), st.text("xy", max_size=3))
def test_an_edit_is_a_replacement_of_a_slice(text: str, one: int, other: int, new: str) -> None:
    start, end = sorted((min(one, len(text)), min(other, len(text))))

    def place(offset: int) -> tuple[int, int]:
        before = text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    (line, column), (end_line, end_column) = place(start), place(end)
    change = Edit(line=line, column=column, end_line=end_line, end_column=end_column, text=new)
    assert apply(text, [change]) == text[:start] + new + text[end:]


def test_all_are_mended() -> None:
    result = fix("bad = bad + bad\nx = bad\n", finder("bad", "good"))
    assert result.text == "good = good + good\nx = good\n"
    assert len(result.mended) == 4


def test_a_fix_that_breaks_the_syntax_is_not_kept() -> None:
    assert fix("bad = 1\n", finder("bad", "(")).text == "bad = 1\n"
    assert fix("bad = 1\n", finder("bad", "(")).mended == ()


def test_a_fix_that_does_not_help_is_not_kept() -> None:
    assert fix("bad = 1\n", finder("bad", "badbad")).text == "bad = 1\n"


def test_one_that_cannot_be_mended_does_not_keep_others_from_it() -> None:
    def check(text: str) -> list[Finding]:
        return finder("bad", "good")(text) + finder("ugly", "(", "TW998")(text)

    assert fix("bad = ugly\nbad2 = 1\n", check).text == "good = ugly\ngood2 = 1\n"


def test_fixes_that_touch_are_made_one_after_the_other() -> None:
    def check(text: str) -> list[Finding]:
        return finder("ab", "x", "TW998")(text) + finder("ba", "y")(text)

    assert fix("aba = 1\n", check).text == "xa = 1\n"
