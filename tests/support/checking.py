"""What tests of checking mode share: launches in it, and what they find."""

import inspect

import cuda.tile as ct
import pytest

from tilewright.interpret.check import CheckError
from tilewright.interpret.launch import Launcher
from tilewright.interpret.settings import Settings

Const = ct.Constant[int]


@ct.kernel
def double(x, out, size: Const):
    ct.store(out, (ct.bid(0),), 2 * ct.load(x, (ct.bid(0),), (size,)))


def launch(kernel, grid, *arguments, **settings):
    Launcher(Settings(check=True, **settings)).launch(0, grid, kernel, arguments)


def findings(kernel, grid, *arguments, **settings):
    with pytest.raises(CheckError) as error:
        launch(kernel, grid, *arguments, **settings)
    return error.value.findings


def only_finding(kernel, grid, *arguments, **settings):
    (finding,) = findings(kernel, grid, *arguments, **settings)
    return finding


def line_of(kernel, text):
    """Line of its file that has `text` in the source of a kernel."""
    lines, first = inspect.getsourcelines(kernel._annotated_function.pyfunc)
    return next(number for number, line in enumerate(lines, first) if text in line)
