"""What kernels hand to each other is in rows that TMA reads, whatever the shape: without it they spill registers."""

import cuda.tile as ct
import pytest
import torch

from reference_ops import attention
from tilewright.interpret import enabled


@pytest.mark.parametrize("m", [19, 64])
def test_sums_of_queries(m, monkeypatch):
    sums = []
    with enabled(), monkeypatch.context() as patch:
        launch = ct.launch

        def record(stream, grid, kernel, arguments):
            sums.extend(x for x in arguments if isinstance(x, torch.Tensor) and x.dtype == torch.float32)
            launch(stream, grid, kernel, arguments)

        patch.setattr(ct, "launch", record)
        q, k, v = (torch.randn(2, 3, m, 24, dtype=torch.bfloat16, device="cuda").requires_grad_() for _ in range(3))
        attention(q, k, v).sum().backward()
    assert len(sums) == 5  # logarithms of one kernel, and both of two
    for x in sums:
        assert x.shape == (2, 3, m)
        assert x.data_ptr() % 16 == 0
        assert all(step % 4 == 0 for step in x.stride()[:2])
