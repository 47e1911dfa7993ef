"""Whether a result is the expected one, as closely as the benchmarks of the template ask for."""

from typing import Any

import torch

_TOLERANCE = (
    2e-2  # of a value, and of the largest value, so that zeros never pass for a result that is small throughout
)


def assert_agreement(found: Any, expected: Any) -> None:
    """Compare tensors, or tuples of them.

    Raises:
        AssertionError: They differ.
    """
    if isinstance(expected, tuple | list):
        assert isinstance(found, tuple | list), f"the result is a {type(found).__name__}, not {len(expected)} tensors"
        assert len(found) == len(expected), f"there are {len(found)} results, not {len(expected)}"
        for one, other in zip(found, expected, strict=True):
            assert_agreement(one, other)
        return
    exact = not expected.is_floating_point() or not expected.numel()
    largest = 0.0 if exact else expected.abs().max().item()
    relative, absolute = (0.0, 0.0) if exact else (_TOLERANCE, _TOLERANCE * min(1.0, largest))
    torch.testing.assert_close(found, expected, rtol=relative, atol=absolute)
