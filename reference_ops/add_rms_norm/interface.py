"""The dispatch interface of add_rms_norm, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("add_rms_norm")
def add_rms_norm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-6,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Residual addition, then root mean square normalization of the last dimension of the sum.

    Args:
        x: Input of any shape and strides; its last dimension is normalized, after the residual is added.
        residual: Summand of the shape and dtype of x; the sum is rounded to that dtype.
        weight: Factor for each element of a row.
        bias: Summand for each element of a row.
        eps: Added to the mean square before the root.
        out: Tensors to write the results to; shapes, dtypes and device of the results.
        **kwargs: Options of one backend.

    Returns:
        The normalized sum, and the sum: the next residual; both of the shape and dtype of x.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"add_rms_norm is not implemented for {get_current_backend()}")
