"""The dispatch interface of dropout, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("dropout")
def dropout(
    x: torch.Tensor,
    seed: int,
    p: float = 0.5,
    training: bool = True,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Elements set to zero at random, the others scaled up; a seed decides which, also in the gradient.

    Args:
        x: Input of any shape and strides.
        seed: Which elements are dropped; the same seed drops the same ones of a shape.
        p: Probability with which an element is dropped, from 0 to 1.
        training: Whether to drop at all.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"dropout is not implemented for {get_current_backend()}")
