"""The compiler's front end, as the interpreter uses it."""

import warnings

import cuda.tile as ct
import pytest
import torch

from tilewright.cutile.signature import signature
from tilewright.interpret import frontend
from tilewright.interpret.frontend import is_kernel
from tilewright.interpret.frontend import typed_kernel


@ct.kernel
def copy(X, Y, n: ct.Constant[int]):
    ct.store(Y, (0,), ct.load(X, (0,), (n,)))


def typed(*arguments):
    parameters = signature(copy, arguments, aligned=True).parameters
    return typed_kernel(copy._annotated_function, parameters, "sm_90")


def test_parameters_of_the_ir_are_address_shape_and_strides_of_each_array():
    kernel = typed(torch.zeros(4), torch.zeros(4), 4)
    assert kernel.name == "copy"
    assert len(kernel.body.params) == 2 * (1 + 1 + 1)
    assert [constraint.ndim for constraint in kernel.constraints] == [1, 1]


def test_kernels_are_told_from_other_values():
    assert is_kernel(copy)
    assert not any(map(is_kernel, (copy._annotated_function.pyfunc, len, None, "copy")))


@pytest.mark.parametrize(("release", "tested"), [("1.5.2", True), ("1.7.0", True), ("1.8.0", False), ("2.0", False)])
def test_release_that_is_not_tested_is_told_once(monkeypatch, release, tested):
    monkeypatch.setattr(frontend, "version", lambda _: release)
    frontend._warn_of_untested_release.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        typed(torch.zeros(4), torch.zeros(4), 4)
        typed(torch.zeros(4), torch.zeros(4), 4)
    frontend._warn_of_untested_release.cache_clear()
    expected = [f"cuda-tile {release} is installed; the interpreter is tested with 1.5, 1.6, 1.7"]
    assert [str(each.message) for each in caught] == ([] if tested else expected)
