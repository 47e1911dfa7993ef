"""The dispatch interface of topk, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("topk")
def topk(
    x: torch.Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The k largest or smallest elements of rows along one dimension, and where they are.

    Args:
        x: Input of any shape and strides.
        k: How many elements, at most 64.
        dim: Dimension to choose from; another than the last is copied.
        largest: Whether the largest elements are wanted, or the smallest; NaN is the largest.
        sorted: Whether the order matters; it is the same either way.
        out: Tensors to write the results to; shapes, dtypes and device of the results.
        **kwargs: Options of one backend.

    Returns:
        Values and int64 indices, of the shape of x but for `dim`, which is k; of equal elements the first comes first.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"topk is not implemented for {get_current_backend()}")
