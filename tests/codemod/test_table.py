"""The table on top of a kernel file: read for one architecture, and changed for it alone."""

from pathlib import PurePosixPath

import pytest

from tilewright.codemod.table import Place
from tilewright.codemod.table import Table
from tilewright.errors import UsageError

CALLS = '''"""Kernel — with a dash that is three bytes long."""


@dataclass(frozen=True)
class _Config:
    """A tile and its hints."""

    tile: tuple[int, int]
    warps: int = 4
    most: int = 2**31

    @property
    def kernel(self):
        return self


# Measured on sm_90.
CONFIGS = {
    2: {
        8: (_Config((64, 64)),),  # Ampere
        9: (
            _Config((128, 64), 8),
            _Config((64, 64), most=16),
        ),
    },
    4: {8: (_Config((32, 32)),)},
}
'''
HINTS = """HINTS = {  # by elements
    4096: {"occupancy": 4, "warps": 4},
    8192: {"occupancy": ct.ByTarget(sm_90=4, sm_120=6, default=3), "warps": ct.ByTarget(sm_90=8)},
}
"""


def table(text, arch="sm_90", itemsize=2):
    name = "CONFIGS" if "CONFIGS" in text else "HINTS"
    place = Place(name=name, arch=arch, itemsize=itemsize if name == "CONFIGS" else None)
    return Table(text, place, path=PurePosixPath("cutile.py"))


def test_entries_of_calls():
    assert [(entry.label, entry.values) for entry in table(CALLS).entries] == [
        ("CONFIGS[2][9][0]", {"tile": (128, 64), "warps": 8}),
        ("CONFIGS[2][9][1]", {"tile": (64, 64), "warps": 4, "most": 16}),
    ]


def test_entries_of_hints_on_an_architecture():
    assert [(entry.label, entry.values) for entry in table(HINTS).entries] == [
        ("HINTS[4096]", {"occupancy": 4, "warps": 4}),
        ("HINTS[8192]", {"occupancy": 4, "warps": 8}),
    ]
    assert table(HINTS, "sm_100").entries[1].values == {"occupancy": 3, "warps": None}


@pytest.mark.parametrize(
    ("arch", "tiles"),
    [("sm_80", [(64, 64), (128, 64)]), ("sm_90", [(128, 64), (64, 64)]), ("sm_120", [(128, 64), (64, 64)])],
)
def test_relatives_are_those_of_the_architecture_and_then_of_nearer_ones(arch, tiles):
    found = [values["tile"] for values in table(CALLS, arch).relatives]
    assert list(dict.fromkeys(found)) == tiles


def test_relatives_are_of_one_size_of_elements_and_told_once():
    assert table(CALLS, itemsize=4).relatives == [{"tile": (32, 32), "warps": 4}]
    values = table(CALLS, "sm_80").relatives
    assert len(values) == 3
    assert [entry["most"] for entry in values if "most" in entry] == [16]


def test_relatives_in_a_table_of_hints():
    assert table(HINTS).relatives == [{"occupancy": 4, "warps": 4}, {"occupancy": 4, "warps": 8}]


def test_older_generation_serves_a_newer_architecture():
    assert [entry.values["tile"] for entry in table(CALLS, "sm_120").entries] == [(128, 64), (64, 64)]


@pytest.mark.parametrize(
    ("values", "old", "new"),
    [
        ({"tile": (256, 64)}, "_Config((128, 64), 8)", "_Config((256, 64), 8)"),
        ({"warps": 4}, "_Config((128, 64), 8)", "_Config((128, 64), 4)"),
        ({"tile": (128, 64), "warps": 8}, "", ""),
    ],
)
def test_call_is_changed_and_nothing_else(values, old, new):
    assert table(CALLS).replaced(0, values) == CALLS.replace(old, new)


def test_argument_by_name_is_added_and_taken_away_with_its_default():
    added = table(CALLS).replaced(1, {"warps": 8})
    assert added == CALLS.replace("_Config((64, 64), most=16)", "_Config((64, 64), warps=8, most=16)")
    assert table(added).replaced(1, {"warps": 4}) == CALLS


def test_generation_that_other_architectures_share_is_copied():
    changed = table(CALLS, "sm_100", itemsize=4).replaced(0, {"warps": 8})
    assert changed == CALLS.replace(
        "8: (_Config((32, 32)),)}", "8: (_Config((32, 32)),), 10: (_Config((32, 32), warps=8),)}"
    )
    assert table(changed, "sm_90", itemsize=4).entries[0].values["warps"] == 4


@pytest.mark.parametrize(
    ("arch", "index", "values", "old", "new"),
    [
        ("sm_90", 0, {"occupancy": 8}, '"occupancy": 4, ', '"occupancy": ct.ByTarget(sm_90=8, default=4), '),
        ("sm_90", 1, {"occupancy": 3}, "sm_90=4, sm_120", "sm_120"),
        ("sm_100", 1, {"occupancy": 2}, "sm_90=4, ", "sm_90=4, sm_100=2, "),
        ("sm_100", 1, {"warps": 4}, "ct.ByTarget(sm_90=8)", "ct.ByTarget(sm_90=8, sm_100=4)"),
        ("sm_90", 0, {"occupancy": 4}, "", ""),
    ],
)
def test_hint_is_changed_on_one_architecture(arch, index, values, old, new):
    changed = table(HINTS, arch).replaced(index, values)
    assert changed == HINTS.replace(old, new)
    assert table(changed, arch).entries[index].values[next(iter(values))] == next(iter(values.values()))


def test_table_that_is_one_entry():
    text = 'HINTS = {"occupancy": 6, "warps": 4}\n'
    assert [(entry.label, entry.values) for entry in table(text).entries] == [("HINTS", {"occupancy": 6, "warps": 4})]
    changed = table(text).replaced(0, {"occupancy": 3, "warps": 4})
    assert changed == 'HINTS = {"occupancy": ct.ByTarget(sm_90=3, default=6), "warps": 4}\n'


def test_entries_of_tuples():
    text = 'HINTS = {\n    "rows": (4096, False, ct.ByTarget(sm_90=8, default=4)),\n    "columns": (64, True, 4),\n}\n'
    assert [(entry.label, entry.values) for entry in table(text).entries] == [
        ("HINTS['rows']", {"0": 4096, "1": False, "2": 8}),
        ("HINTS['columns']", {"0": 64, "1": True, "2": 4}),
    ]
    assert table(text, "sm_100").replaced(0, {"2": 3}) == text.replace("sm_90=8, d", "sm_90=8, sm_100=3, d")
    assert table(text).replaced(1, {"2": 2}) == text.replace("True, 4", "True, ct.ByTarget(sm_90=2, default=4)")


def test_other_entries_serve_where_one_is_removed():
    assert [entry.values["tile"] for entry in table(table(CALLS).removed(0)).entries] == [(64, 64)]
    newer = table(table(CALLS, "sm_100").removed(1), "sm_100")
    assert [entry.values["tile"] for entry in newer.entries] == [(128, 64)]
    assert [entry.values["tile"] for entry in table(newer.text).entries] == [(128, 64), (64, 64)]


def test_entry_that_nothing_can_replace_is_not_removed():
    assert table(CALLS, itemsize=4).removed(0) is None
    assert table(HINTS).removed(0) is None


def test_signature_stands_above_the_table_and_is_replaced():
    once = table(CALLS).signed("tuned on Monday")
    assert once == CALLS.replace("sm_90.\n", "sm_90.\n# sm_90: tuned on Monday\n")
    twice = table(table(once, "sm_100").signed("not measured")).signed("tuned on Tuesday")
    assert twice == CALLS.replace("sm_90.\n", "sm_90.\n# sm_90: tuned on Tuesday\n# sm_100: not measured\n")


def test_text_without_the_table_is_the_same_whatever_is_in_it():
    changed = table(table(CALLS).replaced(0, {"warps": 2})).signed("tuned on Monday")
    assert table(CALLS).without() == table(changed).without() == CALLS.partition("CONFIGS = ")[0]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("CONFIGS = {", "CONFIGS = make() or {", "has no table CONFIGS"),
        ("    2: {", "    1: {", r"has no CONFIGS\[2\]"),
        ("8: (_Config((64, 64)),),  # Ampere\n        9:", "11:", "has nothing for sm_90"),
        ("_Config((128, 64), 8)", "FAST", r"has an entry CONFIGS\[2\]\[9\]\[0\] that is no call, dictionary or tuple"),
        ("class _Config:", "class _Other:", "which is no class of the file"),
    ],
)
def test_table_of_another_form_is_refused(old, new, found):
    assert old in CALLS
    with pytest.raises(UsageError, match=found):
        _ = table(CALLS.replace(old, new)).entries


def test_an_architecture_before_all_of_the_table_is_told_the_first():
    newer = CALLS.replace("8: (_Config((64, 64)),),  # Ampere\n        9:", "12: (_Config((64, 64)),),\n        11:")
    with pytest.raises(UsageError) as refusal:
        _ = table(newer).entries
    assert refusal.value.expected == "expected an architecture from sm_110 on"
