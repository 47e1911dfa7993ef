# SPDX-FileCopyrightText: Copyright (c) 2025 NVIDIA CORPORATION & AFFILIATES. All rights reserved.
#
# SPDX-License-Identifier: MIT

import pytest
import torch

import tilegym

from .. import common


class Test_Softmax(common.PyTestCase):
    @staticmethod
    def reference(x):
        return torch.softmax(x, dim=-1)

    _backends = ["cutile"]

    @pytest.mark.parametrize("m, n", [(4096, 2**i) for i in range(8, 15)])
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
    @pytest.mark.parametrize("backend", _backends)
    def test_op(self, m, n, dtype, backend, arch):
        if not torch.cuda.is_available():
            pytest.skip("CUDA is not available")
        if tilegym.is_backend_available(backend):
            tilegym.set_backend(backend)
        else:
            pytest.skip(f"Backend {backend} is not available")
        self.setUp()
        x = torch.randn(m, n, dtype=dtype, device="cuda")
        self.assertCorrectness(tilegym.ops.softmax, self.reference, {"x": x})
