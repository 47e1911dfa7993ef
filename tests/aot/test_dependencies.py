import pytest

pytest.importorskip("torch")

from tests.support.hosts import edit
from tests.support.hosts import scale_add
from tilewright.aot.dependencies import source_files


@pytest.fixture
def operator(tmp_path):
    return scale_add(tmp_path)


def names(operator):
    return {path.relative_to(operator.host.root).as_posix() for path in source_files(operator)}


def test_stub_kernel_and_test_belong_to_it_with_what_they_import(operator):
    found = names(operator)
    assert {str(operator.stub), str(operator.kernel), str(operator.test)} <= found
    assert f"{operator.host.package}/backend.py" in found


def test_a_neighbour_that_is_only_found_does_not(operator):
    neighbour = operator.path(operator.kernel).parent.parent / "neighbour"
    neighbour.mkdir()
    (neighbour / "__init__.py").write_text("X = 1\n")
    assert not [name for name in names(operator) if "neighbour" in name]


def test_a_neighbour_imported_inside_a_function_does(operator):
    neighbour = operator.path(operator.kernel).parent.parent / "neighbour.py"
    neighbour.write_text("X = 1\n")
    kernel = operator.path(operator.kernel)
    kernel.write_text(kernel.read_text() + "\n\ndef late():\n    from ..neighbour import X\n\n    return X\n")
    assert f"{operator.host.package}/neighbour.py" in names(operator)


def test_a_file_that_cannot_be_parsed_is_an_error(operator):
    edit(operator, operator.kernel, "@ct.kernel", "@ct.kernel(")
    with pytest.raises(SyntaxError):
        source_files(operator)
