"""Find the files of the host that an operator is made of, by the import statements in them."""

from modulefinder import ModuleFinder
from pathlib import Path

from tilewright.model.operator import Operator


def source_files(operator: Operator) -> frozenset[Path]:
    """Every file of the host that the operator's stub, kernel and test import, directly or not, with these three.

    Nothing is run. What a package imports by names that are computed, as a host does to find its operators, is not
    followed: an operator does not depend on its neighbours for being found beside them.

    Raises:
        ImportError: a module of the operator does not exist.
        SyntaxError: a file cannot be parsed.
        OSError: a file cannot be read.
        ValueError: a file is not text.
    """
    finder = ModuleFinder(path=[str(path) for path in operator.import_paths])
    for file in (operator.stub, operator.kernel, operator.test):
        finder.import_hook(operator.module(file))
    files = [getattr(module, "__file__", None) for module in finder.modules.values()]  # not in the type of a module
    return frozenset(Path(file) for file in files if file)
