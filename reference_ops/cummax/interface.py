"""The dispatch interface of cummax, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("cummax")
def cummax(
    x: torch.Tensor,
    dim: int = -1,
    reverse: bool = False,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Largest value so far along one dimension, and where it last was; NaN is the largest.

    Args:
        x: Input of any shape and strides.
        dim: Dimension to go along.
        reverse: Go from the last element to the first.
        out: Tensors to write the results to; shapes, dtypes and device of the results.
        **kwargs: Options of one backend.

    Returns:
        Values and int64 indices, both of the shape of the input.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"cummax is not implemented for {get_current_backend()}")
