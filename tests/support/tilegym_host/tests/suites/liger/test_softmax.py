# SPDX-FileCopyrightText: Copyright (c) 2025 NVIDIA CORPORATION & AFFILIATES. All rights reserved.
#
# SPDX-License-Identifier: MIT

import pytest
import torch

import tilegym
from tilegym.suites.liger import ops as liger_ops

from ... import common


class Test_LigerSoftmax(common.PyTestCase):
    _backends = ["cutile"]

    @pytest.mark.parametrize("backend", _backends)
    def test_op(self, backend):
        if not torch.cuda.is_available():
            pytest.skip("CUDA is not available")
        if tilegym.is_backend_available(backend):
            tilegym.set_backend(backend)
        else:
            pytest.skip(f"Backend {backend} is not available")
        self.setUp()
        x = torch.randn(128, 1000, device="cuda")
        torch.testing.assert_close(liger_ops.softmax(x), torch.softmax(x, dim=-1))
