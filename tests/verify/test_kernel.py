from dataclasses import replace

import pytest

from tests.support.hosts import edit
from tilewright.verify.kernel import problems

ALPHA = "    alpha: float = 1.0,\n"


def test_kernel_as_it_should_be(operator):
    assert list(problems(operator)) == []


def test_no_implementation(operator):
    edit(operator, operator.kernel, '@register_impl("scale_add", backend="cutile")', "")
    assert '@register_impl("scale_add", backend="cutile")' in next(problems(operator))


def test_implementation_of_another_backend_is_not_one(operator):
    edit(operator, operator.kernel, 'backend="cutile"', 'backend="triton"')
    assert "has no @register_impl" in next(problems(operator))


def test_implementation_may_be_registered_by_a_call(operator):
    edit(operator, operator.kernel, '@register_impl("scale_add", backend="cutile")\n', "")
    path = operator.path(operator.kernel)
    path.write_text(path.read_text() + '\n\nregister_impl("scale_add", "cutile")(scale_add)\n')
    assert list(problems(operator)) == []


@pytest.mark.parametrize(
    ("parameter", "found"),
    [
        ("    beta: float = 1.0,\n", "parameter 3 is `beta=1.0`, in the stub `alpha=1.0`"),
        ("    alpha: float = 2.0,\n", "parameter 3 is `alpha=2.0`, in the stub `alpha=1.0`"),
        ("    alpha: float,\n", "parameter 3 is `alpha`, in the stub `alpha=1.0`"),
        ("", "parameter 3 is `out=None`, in the stub `alpha=1.0`"),
        ("    *,\n    alpha: float = 1.0,\n", "parameter 3 is `*, alpha=1.0`, in the stub `alpha=1.0`"),
    ],
    ids=["name", "default", "required", "missing", "by name only"],
)
def test_parameter_that_differs(operator, parameter, found):
    edit(operator, operator.kernel, ALPHA, parameter)
    (problem,) = problems(operator)
    assert problem.startswith("tiny_ops/scale_add/cutile.py:")
    assert problem.endswith(f" {found}: make them equal")


def test_annotations_may_differ(operator):
    edit(operator, operator.kernel, "    alpha: float = 1.0,\n", "    alpha=1.0,\n")
    assert list(problems(operator)) == []


def test_backend_may_have_options_of_its_own(operator):
    edit(operator, operator.kernel, "    **kwargs,\n", "    occupancy: int = 1,\n    **kwargs,\n")
    assert list(problems(operator)) == []


def test_stub_may_leave_a_default_to_the_backend(operator):
    edit(operator, operator.stub, ALPHA, "    alpha: float | None = None,\n")
    assert list(problems(operator)) == []


def test_rendered_module_without_kernel(operator):
    rendered = replace(operator, template_version="0.1.0")
    edit(operator, operator.kernel, "@ct.kernel(occupancy=4)\n", "")
    assert list(problems(rendered)) == []
    edit(operator, operator.kernel, "@ct.kernel\n", "")
    assert list(problems(rendered)) == ["tiny_ops/scale_add/cutile.py has no @ct.kernel: write one"]
