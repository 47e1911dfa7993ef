"""The dispatch interface of group_norm, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("group_norm")
def group_norm(
    x: torch.Tensor,
    num_groups: int,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Group normalization of (N, C, ...), over the channels of a group and all positions of a sample.

    Args:
        x: Input (N, C, ...) of any strides.
        num_groups: Groups that the channels form; it divides C.
        weight: Factor for each channel, (C,).
        bias: Summand for each channel, (C,).
        eps: Added to the variance before the root.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"group_norm is not implemented for {get_current_backend()}")
