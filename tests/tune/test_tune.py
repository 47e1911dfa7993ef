"""A table is tuned: with a formula in place of the GPU, and processes that crash, hang and lie."""

import pytest

from tests.tune.conftest import KERNEL
from tests.tune.conftest import TUNE
from tilewright.cutile.targets import select
from tilewright.errors import UsageError
from tilewright.tune import run
from tilewright.tune.tuner import LONG
from tilewright.tune.tuner import SHORT

BEST = KERNEL.replace("_Config(32, 64)", "_Config(64, 32)")


def entry(tuning, index=1):
    return tuning.entries[index]


def trials(tuning):
    return {(t.values["tile"], t.values["depth"]): t for t in entry(tuning).trials}


def without_signature(tuning):
    lines = tuning.after.decode().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("# sm_"))


def test_fastest_values_are_written(session):
    tuning = session.run()
    assert without_signature(tuning) == BEST
    assert entry(tuning).after == {"tile": 64, "depth": 32}
    # From 1 + 32/48 + 0.1 to 1, on both sizes
    assert entry(tuning).gain == pytest.approx(2 / 3 + 0.1)


def test_file_says_where_the_values_come_from(session):
    lines = session.run().after.decode().splitlines()
    (signature,) = (line for line in lines if line.startswith("# sm_90: "))
    assert signature.startswith("# sm_90: tuned on A GPU, cuda-tile 1.")
    assert lines[lines.index(signature) + 1] == "CONFIGS = {"


def test_table_is_formatted_as_the_host_has_it(session):
    (session.operator.host.root / "ruff.toml").write_text("line-length = 60\n")
    table = session.run().after.decode().partition("CONFIGS = {\n")[2].partition("}\n")[0]
    assert (
        table
        == """    2: {
        8: (_Config(16),),
        9: (_Config(16, most=8), _Config(64, 32)),
    },
"""
    )


def test_search_measures_a_part_of_the_space(session):
    tuning = session.run()
    assert entry(tuning).space == 18
    assert len({point[:2] for point in session.timed()}) <= 8


def test_entries_of_other_architectures_are_measured_first(session):
    path = session.operator.path(session.operator.kernel)
    path.write_text(KERNEL.replace("_Config(32, 64))}", "_Config(32, 64)), 12: (_Config(128, 32),)}"))
    session.run()
    points = list(dict.fromkeys(point[:2] for point in session.timed()))
    assert set(points[:3]) == {(32, 64), (16, 16), (128, 32)}


def test_exhaustive_search_finds_the_same(session):
    assert session.run(exhaustive=True).after == session.run().after
    assert len({point[:2] for point in session.timed()}) == 18 - 3 - 1  # without what does not fit or spills


def test_what_does_not_fit_or_spills_more_is_never_launched(session):
    tuning = session.run(exhaustive=True)
    assert trials(tuning)[512, 16].error == "needs 512 KiB of shared memory; a block may have 227"
    assert trials(tuning)[256, 64].error == "spills 96 bytes"
    assert not [point for point in session.timed() if point[0] == 512 or point[:2] == (256, 64)]


def test_entry_that_no_size_uses_is_left_alone(session):
    unused = entry(session.run(), 0)
    assert (unused.basis, unused.changed, unused.trials) == ("unused", False, ())


def test_entry_that_no_size_uses_is_not_compiled_with_other_values(session):
    session.run()
    assert {tiles[0] for tiles in session.compiled()} == {16}


def test_candidates_are_timed_while_others_compile(session):
    tuning = session.run("stall", exhaustive=True)
    assert trials(tuning)[128, 64].verdict == "ok"


def test_candidate_that_is_not_launched_is_not_ranked(session):
    """Tiles that are larger than the size do not suit it: the other entry serves."""
    suiting = "next((c for c in configs[2][9][:-1] if c.tile <= size[0]), configs[2][9][-1])"
    text = KERNEL.replace("_Config(16, most=8), _Config(32, 64)", "_Config(32, 64), _Config(16)")
    text = text.replace("next(config for config in configs[2][9] if size[0] <= config.most)", suiting)
    session.operator.path(session.operator.kernel).write_text(text)
    tuning = session.run(sizes=[(64,)], exhaustive=True)
    verdicts = {(t.values["tile"], t.values["depth"]): t.verdict for t in entry(tuning, 0).trials}
    assert {point for point, verdict in verdicts.items() if verdict == "unused"} == {
        (16, 16),  # as the other entry
        *((tile, depth) for tile in (128, 256, 512) for depth in (16, 32, 64)),
    }
    assert entry(tuning, 0).after == {"tile": 64, "depth": 32}


def test_sizes_decide_which_entry_is_used(session):
    tuning = session.run(sizes=[(8,)])
    assert [each.basis for each in tuning.entries] == ["measured", "unused"]
    assert "_Config(64, depth=32, most=8)" in tuning.after.decode()


@pytest.mark.parametrize(
    ("act", "error"),
    [
        ("crash", "the process was ended by SIGSEGV"),
        ("hang", "no answer in 1 s"),
        ("wrong", "AssertionError: not close"),
    ],
)
def test_bad_candidate_costs_itself_only(session, act, error):
    tuning = session.run(act, patience=1.0, exhaustive=True)
    assert trials(tuning)[128, 64].error == error
    assert entry(tuning).after == {"tile": 64, "depth": 32}


def test_winner_that_is_wrong_is_not_taken(session):
    tuning = session.run("lie", exhaustive=True)
    assert entry(tuning).after["tile"] != 128
    assert "was faster, and is wrong: AssertionError: not close" in entry(tuning).note


def test_slow_candidate_is_given_up_after_its_first_size(session):
    slow = {point: trial for point, trial in trials(session.run()).items() if trial.verdict == "slow"}
    assert slow
    for point, trial in slow.items():
        assert trial.error == "too slow on 64"
        assert (*point, 1024, SHORT) not in session.timed()


def test_three_that_seem_to_be_fastest_are_measured_for_longer_beside_the_entry(session):
    path = session.operator.path(session.operator.kernel)
    path.write_text(KERNEL.replace("_Config(32, 64)", "_Config(256, 16)"))
    session.run()
    brief, longer = ({point[:2] for point in session.timed() if point[3] == effort} for effort in (SHORT, LONG))
    assert len(brief) > 4
    assert longer == {(256, 16), (64, 32), (64, 16), (64, 64)}  # the formula's 5.05, 1, 1.05 and 1.1


def test_less_than_one_per_cent_is_no_reason_for_a_change(session):
    path = session.operator.path(session.operator.kernel)
    path.write_text(KERNEL.replace("_Config(32, 64)", "_Config(64, 29)"))
    tuning = session.run(exhaustive=True)
    assert trials(tuning)[64, 32].milliseconds["1024"] < trials(tuning)[64, 29].milliseconds["1024"]
    assert tuning.after == tuning.before


def test_what_was_measured_is_not_measured_again(session):
    first = session.run()
    before = session.timed()
    assert session.run().after == first.after
    assert session.timed() == before


def test_what_was_measured_holds_after_it_was_written(session):
    first = session.run(exhaustive=True)
    before = session.timed()
    path = session.operator.path(session.operator.kernel)
    path.write_bytes(first.after)
    assert session.run(exhaustive=True).after == first.after
    assert session.timed() == before


def test_killed_search_goes_on_where_it_was(session, monkeypatch):
    """The notebook ends in the middle of a line."""
    first = session.run()
    measured = session.timed()
    (notebook,) = session.cache.glob("tunings/*.jsonl")
    lines = notebook.read_bytes().splitlines(keepends=True)
    notebook.write_bytes(b"".join(lines[:-4]) + lines[-4][:20])
    assert session.run().after == first.after
    again = session.timed()
    assert 0 < len(again) - len(measured) <= 4
    session.run()
    assert session.timed() == again


def test_cache_that_is_turned_off(session, monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "off")
    monkeypatch.chdir(tmp_path)
    first = session.run()
    before = session.timed()
    assert session.run().after == first.after
    assert len(session.timed()) == 2 * len(before)
    assert not (tmp_path / "off").exists()


@pytest.mark.parametrize("other", ["kernel", "benchmark", "driver", "compiler"])
def test_results_are_those_of_a_kernel_benchmark_gpu_and_compiler(session, monkeypatch, other):
    session.run()
    before = session.timed()
    if other == "driver":
        monkeypatch.setenv("DRIVER", "590")
    elif other == "compiler":
        monkeypatch.setattr(run, "versions", lambda: {"cuda-tile": "9.0"})
    else:
        path = session.operator.path(getattr(session.operator, other))
        path.write_text(path.read_text() + "# another\n")
    session.run()
    assert len(session.timed()) == 2 * len(before)


def test_nothing_is_measured_for_another_architecture(session):
    tuning = session.run(targets=select("sm_100"))
    assert session.timed() == []
    assert [each.basis for each in tuning.entries] == ["compiled"] * 2


def test_nearest_values_that_fit_are_taken_for_another_architecture(session):
    """A tile of 512 needs too much memory; 256, one step of five away, spills; a depth of 32 is half its axis away."""
    session.operator.path(session.operator.kernel).write_text(KERNEL.replace("_Config(32, 64)", "_Config(512, 64)"))
    found = entry(session.run(targets=select("sm_90")))
    assert found.after == {"tile": 128, "depth": 64}
    assert [(t.values["tile"], t.values["depth"]) for t in found.trials] == [(512, 64), (256, 64), (128, 64)]
    assert found.trials[1].error == "spills 96 bytes"


def test_nothing_that_fits_another_architecture(session, tmp_path):
    session.operator.path(session.operator.kernel).write_text(KERNEL.replace("_Config(32, 64)", "_Config(512, 64)"))
    (tmp_path / "partials/made_up/tune.yml").write_text(TUNE.replace("[16, 32, 64, 128, 256, 512]", "[512]"))
    tuning = session.run(targets=select("sm_90"))
    assert entry(tuning).note == "nothing in the space fits: it is left as it is"
    assert not entry(tuning).changed


def test_operator_that_cannot_be_imported(session):
    with pytest.raises(UsageError, match="scale_add cannot be tried out: ImportError: no package"):
        session.run("unfit")


def test_operator_without_a_benchmark(session):
    session.operator.path(session.operator.benchmark).unlink()
    with pytest.raises(UsageError, match="scale_add has no benchmark"):
        session.run()


def test_size_of_another_rank(session):
    with pytest.raises(UsageError, match=r"the size 8x8 has 2 numbers\nexpected 1: n"):
        session.run(sizes=[(8, 8)])


def test_one_dtype_for_each_part_of_the_table(session):
    text = KERNEL.replace("CONFIGS = {\n", "CONFIGS = {\n    4: {9: (_Config(16),)},\n")
    session.operator.path(session.operator.kernel).write_text(text)
    found = session.run(dtypes=(), targets=select("sm_90")).entries
    assert [(each.label, each.dtype) for each in found] == [
        ("CONFIGS[2][9][0]", "float16"),
        ("CONFIGS[2][9][1]", "float16"),
        ("CONFIGS[4][9][0]", "float32"),
    ]


def test_one_dtype_for_a_table_without_parts(session, tmp_path):
    table = """from types import SimpleNamespace

CONFIGS = {"tile": 32, "depth": 64}


def launched(configs, size):
    return SimpleNamespace(**configs)
"""
    session.operator.path(session.operator.kernel).write_text(table)
    (tmp_path / "partials/made_up/tune.yml").write_text(TUNE.replace("true", "false"))
    found = session.run(dtypes=(), targets=select("sm_90")).entries
    assert [(each.label, each.dtype) for each in found] == [("CONFIGS", "float16")]


def test_dtype_that_the_benchmark_does_not_have(session):
    with pytest.raises(UsageError, match="expected one or more of float16, bfloat16, float32"):
        session.run(dtypes=["int8"])


def test_file_that_was_edited_in_the_meantime(session):
    tuning = session.run()
    session.operator.path(session.operator.kernel).write_text("# mine\n")
    with pytest.raises(UsageError, match="was edited while it was tuned"):
        tuning.changes(session.operator)
