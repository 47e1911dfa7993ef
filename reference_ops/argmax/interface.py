"""The dispatch interface of argmax, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("argmax")
def argmax(
    x: torch.Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Index of the first largest value along one dimension or of the flattened tensor; NaN is the largest.

    Args:
        x: Input of any shape and strides.
        dim: Dimension to reduce; None flattens the input.
        keepdim: Keep the reduced dimensions, with length 1.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor without the reduced dimensions, or with length 1 there when `keepdim` is set.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"argmax is not implemented for {get_current_backend()}")
