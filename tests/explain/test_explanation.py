"""What a code, a name and a text are explained by."""

import pytest

from tilewright.errors import UsageError
from tilewright.explain.advice import advise
from tilewright.explain.explanation import explain
from tilewright.explain.explanation import explain_text
from tilewright.explain.explanation import together
from tilewright.explain.matching import matches
from tilewright.rules.registry import all_rules

POWER = 'TypeCheckingError: Invalid argument "shape" of load(): Dimension #0 of shape (100,) is not a power of two'
RANK = "CompilerExecutionError: Return code 3\nerror: 'cuda_tile.mmaf' op operands must be 2D or 3D tiles\n"


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_every_rule_is_explained_by_its_code(rule):
    assert explain(rule.code).rules == (rule,)
    assert explain(f" {rule.code.lower()}\n").rules == (rule,)


def test_the_name_of_an_error_is_enough():
    (match,) = explain("size-not-constant").errors
    assert (match.entry.name, match.message) == ("size-not-constant", "")


@pytest.mark.parametrize(
    ("word", "nearest"),
    [("TW2003", "TW203"), ("size-not-constnt", "size-not-constant"), ("tw21", "TW210"), ("TW2", "TW201")],
)
def test_an_unknown_word_leads_to_the_nearest(word, nearest):
    with pytest.raises(UsageError, match=f"did you mean {nearest}"):
        explain(word)


def test_a_word_that_is_near_to_nothing():
    with pytest.raises(UsageError, match="list them"):
        explain("zzzzzzzz")


def test_the_second_line_of_a_return_code_decides():
    assert [match.entry.name for match in matches(RANK)] == ["matrix-product-rank"]
    assert matches(RANK)[0].message == "error: 'cuda_tile.mmaf' op operands must be 2D or 3D tiles"


def test_a_return_code_that_says_nothing_known():
    assert [match.entry.name for match in matches("Return code 3\nerror: new")] == ["return-code"]


def test_of_a_chain_of_exceptions_the_last_comes_first():
    text = f"{RANK}\nDuring handling of the above exception, another exception occurred:\n\n{POWER}\n"
    assert [match.entry.name for match in matches(text)] == ["size-not-power-of-two", "matrix-product-rank"]


def test_the_source_in_a_traceback_is_no_message():
    frame = '  File "a.py", line 3, in f\n    raise ValueError("Return code 5")\n    ~~~~~^^^\n'
    of_kernel = '    "a.py", line 9, col 5, in copy:\n        x = load("is not a power of two")\n        ^^^^\n'
    text = f"Traceback (most recent call last):\n{frame}{RANK}{of_kernel}"
    assert [match.entry.name for match in matches(text)] == ["matrix-product-rank"]


def test_of_a_report_of_pytest_only_what_was_raised_is_read():
    text = f"    def test():\n        # Return code 5\n>       launch()\n\nE   {POWER}\nE       ct.load(X)\n\na.py:3"
    (match,) = matches(text)
    assert (match.entry.name, match.message) == ("size-not-power-of-two", POWER)


def test_findings_of_check_are_explained_by_their_codes():
    found = explain_text("a.py:1:1: TW110 no stub has the key 'x'\nb.py:2:1: TW111 nothing is registered, see TW110")
    assert [rule.code for rule in found.rules] == ["TW110", "TW111"]


@pytest.mark.parametrize("text", ["", "all is well", "TW999 of another tool"])
def test_nothing_is_said_of_other_texts(text):
    assert not explain_text(text).known


def test_errors_of_several_failures_are_said_once():
    found = together([explain_text(POWER), explain_text(RANK), explain_text(POWER)])
    assert [match.entry.name for match in found.errors] == ["size-not-power-of-two", "matrix-product-rank"]


def test_advice_is_two_lines_with_the_command_that_tells_more():
    title, cause = advise(POWER)
    assert title == "A size of a tile is no power of two (tilewright explain size-not-power-of-two)"
    assert cause.startswith("most likely: The host passes the length of a tensor as the size of a tile; ")


def test_advice_on_a_rule_is_what_the_rule_says():
    (line,) = advise("my_ops/my_op/cutile.py:3:1: TW203 several blocks write Y")
    assert line.endswith("(tilewright explain TW203)")


def test_no_advice_where_nothing_is_known():
    assert advise("all is well") == ()
