"""The dispatch interface of batch_norm, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("batch_norm")
def batch_norm(
    x: torch.Tensor,
    running_mean: torch.Tensor | None = None,
    running_var: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Batch normalization of (N, C, ...), over all samples and positions of each channel, or by running statistics.

    Args:
        x: Input (N, C, ...) of any strides.
        running_mean: Mean of each channel so far, float32 (C,); updated in training.
        running_var: Unbiased variance of each channel so far, float32 (C,); updated in training.
        weight: Factor for each channel, (C,).
        bias: Summand for each channel, (C,).
        training: Whether to normalize by the batch rather than by the running statistics.
        momentum: Share of the batch in the updated running statistics.
        eps: Added to the variance before the root.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"batch_norm is not implemented for {get_current_backend()}")
