"""All phases of a transposed convolution are one launch; the operands are moved by at most one more each."""

import pytest
import torch

from reference_ops import conv_transpose2d
from reference_ops.conv_transpose2d import cutile
from tilewright.interpret import enabled


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize(
    ("layout", "kernel", "launches"),
    [(torch.channels_last, 1, 1), (torch.channels_last, 3, 2), (torch.contiguous_format, 3, 3)],
)
def test_launches_of_a_call(layout, kernel, launches, stride, monkeypatch):
    with enabled(), monkeypatch.context() as patch:
        x = torch.randn(1, 16, 4, 4, device="cuda").to(memory_format=layout)
        weight = torch.randn(16, 8, kernel, kernel, device="cuda").to(memory_format=layout)
        launch, launched = cutile.ct.launch, []
        patch.setattr(cutile.ct, "launch", lambda *arguments: launched.append(launch(*arguments)))
        result = conv_transpose2d(x, weight, stride, output_padding=stride - 1)
        assert len(launched) == launches
        expected = torch.nn.functional.conv_transpose2d(x, weight, None, stride, output_padding=stride - 1)
        torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)
