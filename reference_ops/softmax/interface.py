"""The dispatch interface of softmax, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("softmax")
def softmax(
    x: torch.Tensor,
    dim: int = -1,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Softmax over one dimension, computed in fp32 or wider.

    Args:
        x: Input of any shape and strides.
        dim: Dimension that the result sums to one over.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"softmax is not implemented for {get_current_backend()}")
