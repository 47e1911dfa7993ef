"""The dispatch interface of bmm, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("bmm")
def bmm(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Multiply stacks of matrices, a @ b, with leading dimensions that broadcast.

    Args:
        a: Matrices (..., M, K).
        b: Matrices (..., K, N); the leading dimensions broadcast with those of a.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor (..., N) with the leading dimensions and the dtype of the first matrix.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"bmm is not implemented for {get_current_backend()}")
