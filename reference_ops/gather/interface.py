"""The dispatch interface of gather, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("gather")
def gather(
    x: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Elements of a tensor, each from where its index says along one dimension.

    Args:
        x: Input of any shape and strides.
        dim: Dimension of the places.
        index: Places, int32 or int64, for each element of the result; one outside gives NaN.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor of the shape of index, in the dtype of x.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"gather is not implemented for {get_current_backend()}")
