"""The dispatch interface of cumsum, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("cumsum")
def cumsum(
    x: torch.Tensor,
    dim: int = -1,
    reverse: bool = False,
    exclusive: bool = False,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Running sum along one dimension, accumulated in fp32 or wider.

    Args:
        x: Input of any shape and strides.
        dim: Dimension to go along.
        reverse: Go from the last element to the first.
        exclusive: Leave the element itself out; the first result is 0.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor of the shape and dtype of the input; int64 for integers.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"cumsum is not implemented for {get_current_backend()}")
