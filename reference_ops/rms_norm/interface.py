"""The dispatch interface of rms_norm, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("rms_norm")
def rms_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-6,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Root mean square normalization of the last dimension, computed in fp32 or wider.

    Args:
        x: Input of any shape and strides; its last dimension is normalized.
        weight: Factor for each element of a row.
        bias: Summand for each element of a row.
        eps: Added to the mean square before the root.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"rms_norm is not implemented for {get_current_backend()}")
