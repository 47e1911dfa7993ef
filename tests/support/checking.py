"""What tests of checking mode share: launches in it, and what they find."""

import pytest

from tilewright.interpret.check import CheckError
from tilewright.interpret.launch import Launcher
from tilewright.interpret.settings import Settings


def launch(kernel, grid, *arguments, **settings):
    Launcher(Settings(check=True, **settings)).launch(0, grid, kernel, arguments)


def findings(kernel, grid, *arguments, **settings):
    with pytest.raises(CheckError) as error:
        launch(kernel, grid, *arguments, **settings)
    return error.value.findings


def only_finding(kernel, grid, *arguments, **settings):
    (finding,) = findings(kernel, grid, *arguments, **settings)
    return finding
