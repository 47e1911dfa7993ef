import pytest
import torch

import tiny_ops

from .. import common


class Test_ScaleAdd(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16]
    _aligned = [(64, 4096)]
    _ragged = [(7, 1021), (1,)]

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        return {
            "x": torch.randn(shape, dtype=dtype, device=device),
            "y": torch.randn(shape, dtype=dtype, device=device),
        }

    @staticmethod
    def reference(x, y, alpha=1.0, out=None):
        return (x.float() + alpha * y.float()).to(x.dtype)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes)
    @pytest.mark.parametrize("shape", _aligned + _ragged)
    def test_op(self, shape, dtype, backend):
        self.select(backend)
        arguments = self.inputs(shape, dtype)
        torch.testing.assert_close(tiny_ops.scale_add(**arguments), self.reference(**arguments))
