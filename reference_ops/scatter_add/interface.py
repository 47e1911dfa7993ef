"""The dispatch interface of scatter_add, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("scatter_add")
def scatter_add(
    x: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    src: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """A copy of a tensor with elements of another one added, each where its index says along one dimension.

    Args:
        x: Input of any shape and strides.
        dim: Dimension of the places.
        index: Places, int32 or int64, of elements of src, or (N,) of slices; outside nothing is added.
        src: What is added, in the dtype of x; sums in floats round in any order.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Contiguous tensor of the shape and dtype of x.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"scatter_add is not implemented for {get_current_backend()}")
