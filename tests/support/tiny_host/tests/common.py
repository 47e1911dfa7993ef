"""What the tests of all operators share."""

import pytest
import torch

import tiny_ops.backend


class PyTestCase:
    @pytest.fixture(autouse=True)
    def _needs_cuda(self):
        if not torch.cuda.is_available():
            pytest.skip("no CUDA device")

    def select(self, backend):
        tiny_ops.backend.set_backend(backend)
