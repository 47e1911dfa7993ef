from dataclasses import replace

import pytest

from tests.support.hosts import edit
from tilewright.verify.reading import UnreadableError
from tilewright.verify.stub import problems

RAISE = '    raise NotImplementedError(f"scale_add is not implemented for {get_current_backend()}")'


def test_stub_as_it_should_be(operator):
    assert list(problems(operator)) == []


def test_stub_without_docstring_is_still_one(operator):
    edit(operator, operator.stub, '    """x + alpha * y, element by element."""\n', "")
    assert list(problems(operator)) == []


@pytest.mark.parametrize(
    "body", ["    return x", RAISE.replace("NotImplementedError", "ValueError"), f"    x = y\n{RAISE}"]
)
def test_stub_that_does_something(operator, body):
    edit(operator, operator.stub, RAISE, body)
    assert list(problems(operator)) == [
        "tiny_ops/scale_add/interface.py:12 scale_add must only raise NotImplementedError: backends do the work"
    ]


def test_key_of_another_name(operator):
    edit(operator, operator.stub, "def scale_add(", "def scale_and_add(")
    assert "decorates scale_and_add: give both the same name" in next(problems(operator))


def test_no_stub(operator):
    edit(operator, operator.stub, '@dispatch("scale_add")', "@functools.cache")
    assert list(problems(operator)) == ['tiny_ops/scale_add/interface.py has no @dispatch("scale_add"): add it']


def test_no_file(operator):
    operator.path(operator.stub).unlink()
    with pytest.raises(UnreadableError, match=r"interface.py does not exist"):
        list(problems(operator))


def test_no_file_of_a_rendered_operator(operator):
    operator.path(operator.stub).unlink()
    with pytest.raises(UnreadableError, match=r"copier recopy -a \.tilewright/ops/scale_add\.yml$"):
        list(problems(replace(operator, template_version="0.1.0")))


def test_no_python(operator):
    operator.path(operator.stub).write_text("def\n")
    with pytest.raises(UnreadableError, match=r"interface.py:1 is not Python: invalid syntax"):
        list(problems(operator))
