"""The dispatch interface of gemv, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("gemv")
def gemv(
    a: torch.Tensor,
    x: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Multiply a matrix, or each of a stack of them, by one vector.

    Args:
        a: Matrices (..., M, K), row by row or column by column in memory.
        x: Vector (K,).
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor of the shape of a without its last dimension.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"gemv is not implemented for {get_current_backend()}")
