from tests.support.hosts import tiny_host
from tilewright.config import find_host
from tilewright.verify.status import read_status


def test_files_of_a_complete_operator(tmp_path):
    (row,) = read_status(tiny_host(tmp_path))
    assert (row.name, row.template_version) == ("scale_add", "0.1.0")
    assert [outcome.verdict for outcome in row.steps] == ["ok"] * 5 + ["skipped"]


def test_nothing_is_imported(tmp_path):
    host = tiny_host(tmp_path)
    (tmp_path / "tiny_ops" / "__init__.py").write_text("raise SystemExit('imported')\n")
    assert len(read_status(host)) == 1


def test_operators_by_hand_are_rows_too(pristine_tilegym_checkout):
    rows = {row.name: row for row in read_status(find_host(pristine_tilegym_checkout))}
    assert len(rows) > 90
    assert [outcome.verdict for outcome in rows["softmax"].steps[:3]] == ["ok"] * 3


def test_argument_that_an_implementation_swallows_is_seen(pristine_tilegym_checkout):
    """The dispatch has `scaling`, the cuTile implementation `sm_scale` and `**kwargs`: a value passed is ignored."""
    rows = {row.name: row for row in read_status(find_host(pristine_tilegym_checkout))}
    (outcome,) = (step for step in rows["gemma_attention_decode"].steps if step.step == "kernel")
    assert "is `sm_scale=None`, in the stub `scaling=None`" in outcome.detail
