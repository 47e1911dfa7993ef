"""A test file that the examples of rules about tests start from."""

TEST = """
import pytest
import torch

from my_ops import my_op
from my_ops.backend import is_backend_available
from my_ops.backend import set_backend

from .. import common


class Test_MyOp(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _shapes = [(64, 4096), (5, 1337), (1,), (0, 5)]

    @staticmethod
    def reference(x):
        return x * 2

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes)
    @pytest.mark.parametrize("shape", _shapes)
    def test_op(self, shape, dtype, backend):
        if not is_backend_available(backend):
            pytest.skip(backend)
        set_backend(backend)
        self.setUp()
        kwargs = {"x": torch.randn(shape, dtype=dtype, device="cuda").mT}
        self.assertCorrectness(my_op, self.reference, kwargs)
"""
