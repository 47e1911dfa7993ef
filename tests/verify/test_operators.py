from pathlib import PurePosixPath

import pytest

from tests.support.hosts import tiny_host
from tests.support.sample_operator import kernel
from tilewright.config import find_host
from tilewright.errors import UsageError
from tilewright.verify.operators import choose
from tilewright.verify.operators import find_operators

ANSWERS = "_commit: v0.0.9\nop: my_op\nplacement: {placement}\nskip: {{benchmark: no baseline exists}}\n"


def scaffold(checkout, placement="main"):
    """What `copier copy` leaves in a TileGym checkout, as far as this matters: registered nowhere."""
    below = "" if placement == "main" else placement
    module = checkout / "src/tilegym/ops/cutile" / below / "my_op.py"
    module.write_text(kernel("my_op"))
    answers = checkout / ".tilewright/ops/my_op.yml"
    answers.parent.mkdir(parents=True)
    answers.write_text(ANSWERS.format(placement=placement))


def named(host, name):
    return next(operator for operator in find_operators(host) if operator.name == name)


def test_operator_of_a_standalone_host(tmp_path):
    (operator,) = find_operators(tiny_host(tmp_path))
    assert (operator.name, operator.function, operator.template_version) == ("scale_add", "scale_add", "0.1.0")
    assert (operator.declared, operator.loaded, operator.skip) == (True, True, {})
    assert [str(path) for path in (operator.stub, operator.kernel, operator.test, operator.benchmark)] == [
        "tiny_ops/scale_add/interface.py",
        "tiny_ops/scale_add/cutile.py",
        "tests/ops/test_scale_add.py",
        "tests/benchmark/bench_scale_add.py",
    ]


def test_operator_by_hand_is_found_by_its_registration(pristine_tilegym_checkout):
    gelu = named(find_host(pristine_tilegym_checkout), "gelu")
    assert gelu.template_version == ""
    assert gelu.stub == PurePosixPath("src/tilegym/ops/activation.py")
    assert gelu.kernel == PurePosixPath("src/tilegym/ops/cutile/activation/gelu.py")
    assert gelu.test == PurePosixPath("tests/ops/activation/test_gelu.py")
    assert gelu.loaded


@pytest.mark.parametrize("placement", ["main", "experimental"])
def test_scaffold_that_is_not_registered(tilegym_checkout, placement):
    scaffold(tilegym_checkout, placement)
    my_op = named(find_host(tilegym_checkout), "my_op")
    assert (my_op.declared, my_op.loaded) == (False, False)
    assert my_op.stub == PurePosixPath("src/tilegym/ops/ops.py")
    below = "" if placement == "main" else placement
    assert my_op.test == PurePosixPath("tests/ops", below, "test_my_op.py")
    assert (my_op.template_version, my_op.skip) == ("0.0.9", {"benchmark": "no baseline exists"})


def test_without_names_tilegyms_own_operators_are_left_alone(tilegym_checkout):
    scaffold(tilegym_checkout)
    host = find_host(tilegym_checkout)
    assert [operator.name for operator in choose(find_operators(host), [], host)] == ["my_op"]


def test_unknown_name_is_refused(tmp_path):
    host = tiny_host(tmp_path)
    with pytest.raises(UsageError, match=r"no operator 'scale'\nexpected one of scale_add"):
        choose(find_operators(host), ["scale"], host)


def test_names_count_once(tmp_path):
    host = tiny_host(tmp_path)
    assert len(choose(find_operators(host), ["scale_add", "scale_add"], host)) == 1


def test_damaged_answers_are_named(tmp_path):
    host = tiny_host(tmp_path)
    (tmp_path / ".tilewright/ops/scale_add.yml").write_text("op: [\n")
    with pytest.raises(UsageError, match=r"scale_add.yml is not YAML"):
        find_operators(host)
