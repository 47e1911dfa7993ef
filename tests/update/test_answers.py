"""An answer can be changed while updating; it is checked like that of a new operator, and edits are kept."""

import json

import pytest
import yaml

from tests.support.releases import NEXT
from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import git
from tilewright.render import Batch

KERNEL = "my_ops/swish/cutile.py"
RECORD = ".tilewright/ops/swish.yml"
TANH = "formula=x * tanh(x)"


@pytest.fixture
def up_to_date(tilewright, host):
    """A host whose operators are of the installed template."""
    assert tilewright("update", "--all").exit_code == 0
    commit(host)
    return host


def made_with(source, host, **answers):
    """The files of an operator that is made with these answers."""
    rendering = Batch(source.template).render(answers, host, source=str(source.root), recorded=False)
    return {str(file.path): file.content for file in rendering.files if not file.shared}


def test_the_operator_becomes_the_one_that_these_answers_make(tilewright, up_to_date, pristine):
    result = tilewright("update", "swish", "--data", TANH, "-d", "dtypes=f32")
    assert result.exit_code == 0, result.output
    expected = made_with(pristine[0], up_to_date, op="swish", formula="x * tanh(x)", dtypes=["float32"])
    assert expected.items() <= contents(up_to_date).items()
    assert git(up_to_date, "diff", "--name-only") == ""
    assert "swish: formula=x * tanh(x), dtypes=['float32']\n" in result.stderr
    assert 'git commit -m "Change answers of swish"' in result.stderr


def test_it_moves_to_the_newer_template_with_the_new_answer(tilewright, host, pristine):
    result = tilewright("update", "swish", "--data", TANH)
    assert result.exit_code == 0, result.output
    expected = made_with(pristine[0], host, op="swish", formula="x * tanh(x)")
    assert expected.items() <= contents(host).items()
    assert f'git commit -m "Update to template v{NEXT}"' in result.stderr


def test_an_edit_is_kept(tilewright, up_to_date, pristine):
    with (up_to_date / KERNEL).open("a") as file:
        file.write("# mine\n")
    commit(up_to_date)
    assert tilewright("update", "swish", "--data", TANH).exit_code == 0
    expected = made_with(pristine[0], up_to_date, op="swish", formula="x * tanh(x)")
    assert (up_to_date / KERNEL).read_bytes() == expected[KERNEL] + b"# mine\n"


def test_an_edit_of_a_line_that_the_answer_changes_is_a_conflict(tilewright, up_to_date):
    text = (up_to_date / KERNEL).read_text()
    assert "tx * _sigmoid(tx)" in text
    (up_to_date / KERNEL).write_text(text.replace("tx * _sigmoid(tx)", "tx * _sigmoid(1.702 * tx)"))
    commit(up_to_date)
    result = tilewright("update", "swish", "--data", TANH)
    assert result.exit_code == 1
    assert "  owner:        tout = tx * _sigmoid(1.702 * tx)\n" in result.stderr
    assert "  template:     tout = tx * ct.tanh(tx)\n" in result.stderr


def test_the_answer_that_is_recorded_changes_nothing(tilewright, up_to_date):
    result = tilewright("update", "swish", "--data", "formula=x * sigmoid(x)")
    assert result.exit_code == 0
    assert f"Nothing to do: 1 operator is at v{NEXT}." in result.stderr
    assert git(up_to_date, "status", "--porcelain") == ""


def test_a_gradient_is_derived_dropped_or_given_but_never_left_to_another_formula(tilewright, up_to_date):
    def recorded():
        return yaml.safe_load((up_to_date / RECORD).read_text())["grad_formula"]

    tilewright("update", "swish", "--data", "formula=exp(x)", "--data", "backward=true")
    commit(up_to_date)
    assert recorded() == "grad * exp(x)"
    result = tilewright("update", "swish", "--data", "formula=x * x * x")
    assert result.exit_code == 2
    assert "the recorded gradient is that of exp(x), not of x * x * x" in result.stderr
    assert result.stderr.count("\n") == 3
    tilewright("update", "swish", "--data", "formula=x * x * x", "--data", "grad_formula=3.0 * grad * x * x")
    commit(up_to_date)
    assert recorded() == "3.0 * grad * x * x"
    tilewright("update", "swish", "--data", "backward=false")
    assert recorded() == ""


def test_the_document_has_the_answers(tilewright, up_to_date):
    result = tilewright("update", "swish", "--data", TANH, "--json", "--dry-run")
    assert json.loads(result.stdout)["operators"] == [
        {"name": "swish", "from": f"v{NEXT}", "to": f"v{NEXT}", "answers": {"formula": "x * tanh(x)"}, "detached": []}
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("formulas=x", "did you mean formula?"),
        ("formula=x * sigmod(x)", "swish: the formula calls sigmod"),
        ("dtypes=float31", "swish: 'float31' is not a dtype"),
        ("variant=softmax", "swish: 'softmax' is not a variant of elementwise"),
        ("precision=tf32", "swish: precision does not apply to the family elementwise"),
        ("shapes=many", 'swish: "many" is not a list of'),
        ("op=swoosh", "swish: the op of an operator cannot be changed, here from swish to swoosh"),
        ("package=others", "swish: the package of an operator cannot be changed"),
        ("placement=main", "swish: placement does not apply to the layout standalone"),
        ("backward=perhaps", "backward=perhaps is no answer to backward"),
    ],
)
def test_an_answer_that_cannot_be_is_refused(tilewright, up_to_date, data, message):
    before = contents(up_to_date)
    result = tilewright("update", "--all", "--data", data)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") <= 3
    assert contents(up_to_date) == before


@pytest.mark.parametrize("option", ["--continue", "--abort"])
def test_what_has_begun_takes_no_answers(tilewright, host, option):
    result = tilewright("update", option, "--data", TANH)
    assert result.exit_code == 2
    assert "no operators or other options" in result.stderr


def test_check_takes_no_answers(tilewright, host):
    result = tilewright("update", "--check", "--data", TANH)
    assert result.exit_code == 2
    assert "--check and --data together" in result.stderr
