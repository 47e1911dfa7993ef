# SPDX-FileCopyrightText: Copyright (c) 2025 NVIDIA CORPORATION & AFFILIATES. All rights reserved.
#
# SPDX-License-Identifier: MIT

import pytest
import torch

import tilegym
from tilegym.ops.activation import gelu

from ... import common


class Test_GELU(common.PyTestCase):
    _backends = ["cutile"]

    @pytest.mark.parametrize("approximate", ["none", "tanh"])
    @pytest.mark.parametrize("backend", _backends)
    def test_op(self, approximate, backend):
        if not torch.cuda.is_available():
            pytest.skip("CUDA is not available")
        if tilegym.is_backend_available(backend):
            tilegym.set_backend(backend)
        else:
            pytest.skip(f"Backend {backend} is not available")
        self.setUp()
        x = torch.randn(128, 1000, device="cuda")
        self.assertCorrectness(gelu, torch.nn.functional.gelu, {"input": x, "approximate": approximate})
