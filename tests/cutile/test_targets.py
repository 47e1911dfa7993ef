import pytest

from tilewright.cutile.targets import TARGETS
from tilewright.cutile.targets import select
from tilewright.errors import UsageError


def test_all_architectures_of_the_issue_are_known():
    names = "sm_80 sm_86 sm_89 sm_90 sm_100 sm_103 sm_110 sm_120 sm_121"
    assert [target.name for target in TARGETS] == names.split()


def test_name_and_capability_agree():
    assert all(target.name == f"sm_{target.capability[0]}{target.capability[1]}" for target in TARGETS)


def test_nothing_asked_for_is_everything():
    assert select("") == TARGETS


def test_names_keep_their_order_and_count_once():
    assert [target.name for target in select("sm_90, sm_80,sm_90")] == ["sm_90", "sm_80"]


@pytest.mark.parametrize("names", ["sm_75", "sm_90,", "90", "sm_90a"])
def test_unknown_name_is_refused_with_the_known_ones(names):
    with pytest.raises(UsageError) as error:
        select(names)
    _, expected = str(error.value).split("\n")  # and no guess
    assert expected == "expected one of sm_80, sm_86, sm_89, sm_90, sm_100, sm_103, sm_110, sm_120, sm_121"
