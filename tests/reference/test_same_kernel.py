"""Kernels with hints are made once, not for every shape with the same constants: each would be compiled anew."""

import cuda.tile as ct
import pytest
import torch

from tests.bench.test_checks import NAMES
from tests.bench.test_checks import size_of
from tests.bench.test_checks import workload
from tilewright import interpret


@pytest.mark.parametrize("name", NAMES)
def test_no_second_kernel_for_another_shape(name, monkeypatch):
    work, kernels = workload(name), {}
    with interpret.enabled(), monkeypatch.context() as patch:
        launch = ct.launch

        def record(stream, grid, kernel, arguments):
            constants = [repr(each) for each in arguments if not isinstance(each, torch.Tensor)]
            about = (kernel._pyfunc, repr(kernel._compiler_options), *constants)
            assert kernels.setdefault(about, kernel) is kernel
            return launch(stream, grid, kernel, arguments)

        patch.setattr(ct, "launch", record)
        first, *rest = size_of(name)
        for size in ((first, *rest), (2 * first, *rest)):
            work.function(**work.inputs(*size, work.dtypes[0], "cuda"), backend="cutile")
    assert kernels
