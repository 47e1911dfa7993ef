"""Whether a result is the expected one, for benchmarks that have no `check` of their own."""

from typing import Any

import torch

_TOLERANCE = 2e-2  # of a value, and of the root mean square, so that zeros never pass for what is small throughout


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
    if not expected.is_floating_point():
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        return
    size = expected.double().norm().item() / max(1, expected.numel()) ** 0.5
    torch.testing.assert_close(found, expected, rtol=_TOLERANCE, atol=_TOLERANCE * size)
