import pytest
import torch

from tilewright.bench.agreement import assert_agreement


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (torch.tensor([1.01, 0.0]), torch.tensor([1.0, 0.0])),
        ((torch.ones(2), torch.tensor([3])), (torch.ones(2), torch.tensor([3]))),
        (torch.empty(0), torch.empty(0)),
    ],
)
def test_close(found, expected):
    assert_agreement(found, expected)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (torch.tensor([1.05]), torch.tensor([1.0])),
        (torch.zeros(2), torch.tensor([1e-3, 1e-3])),
        (torch.tensor([4]), torch.tensor([3])),
        (torch.tensor([1.0, float("nan")]), torch.ones(2)),
        (torch.ones(2), (torch.ones(2), torch.ones(2))),
        ((torch.ones(2),), (torch.ones(2), torch.ones(2))),
        (torch.ones(2, dtype=torch.float16), torch.ones(2)),
    ],
)
def test_not_close(found, expected):
    with pytest.raises(AssertionError):
        assert_agreement(found, expected)
