"""The dispatch interface of linear_gelu, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("linear_gelu")
def linear_gelu(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Apply a linear layer: x @ weight.T.

    The result is gelu(acc), where acc are the sums, bias included.

    Args:
        x: Rows (..., K).
        weight: Matrix (N, K); it is applied transposed.
        bias: Vector (N,), added to every row.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor (..., N) with the leading dimensions and the dtype of the first matrix.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"linear_gelu is not implemented for {get_current_backend()}")
