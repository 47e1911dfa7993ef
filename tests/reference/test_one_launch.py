"""What takes as few launches as it can: each is host time, of which small problems consist."""

import cuda.tile as ct
import pytest
import torch

from reference_ops import batch_norm
from reference_ops import cat
from reference_ops import conv_transpose2d
from reference_ops import gemv
from reference_ops import group_norm
from tilewright.interpret import enabled


@pytest.fixture
def launched(monkeypatch):
    """Launches so far, in the interpreter."""
    with enabled(), monkeypatch.context() as patch:
        launch, found = ct.launch, []
        patch.setattr(ct, "launch", lambda *arguments: found.append(launch(*arguments)))
        yield found


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize(
    ("layout", "kernel", "launches"),
    [(torch.channels_last, 1, 1), (torch.channels_last, 3, 1), (torch.contiguous_format, 3, 3)],
)
def test_all_phases_of_a_transposed_convolution(layout, kernel, launches, stride, launched):
    """The operands are moved by at most one more launch each."""
    x = torch.randn(1, 16, 4, 4, device="cuda").to(memory_format=layout)
    weight = torch.randn(16, 8, kernel, kernel, device="cuda").to(memory_format=layout)
    result = conv_transpose2d(x, weight, stride, output_padding=stride - 1)
    assert len(launched) == launches
    expected = torch.nn.functional.conv_transpose2d(x, weight, None, stride, output_padding=stride - 1)
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("side", "launches"), [(8, (1, 1)), (300, (2, 2))])
def test_rows_of_few_tiles_are_normalized_by_one_launch(side, launches, launched):
    x = torch.randn(1, 8, side, side, device="cuda")
    group_norm(x, 8)
    assert len(launched) == launches[0]
    batch_norm(x, training=True)
    assert len(launched) == sum(launches)


@pytest.mark.parametrize(("number", "launches"), [(1, 1), (8, 1), (9, 9)])
def test_contiguous_tensors_are_joined_by_one_launch(number, launches, launched):
    tensors = [torch.randn(5, n + 1, device="cuda") for n in range(number)]
    assert torch.equal(cat(tensors, 1), torch.cat(tensors, 1))
    assert len(launched) == launches


@pytest.mark.parametrize(("rows", "launches"), [(2113, 1), (64, 2)])
def test_rows_that_fill_the_multiprocessors_are_not_split(rows, launches, launched):
    gemv(torch.randn(rows, 16384, device="cuda"), torch.randn(16384, device="cuda"))
    assert len(launched) == launches
