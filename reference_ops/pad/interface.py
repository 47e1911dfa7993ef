"""The dispatch interface of pad, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("pad")
def pad(
    x: torch.Tensor,
    padding: tuple[int, ...],
    value: float = 0,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """A copy with constant elements before and after each dimension, or without some of its own.

    Args:
        x: Input of any shape and strides.
        padding: Elements before and after the last dimension, then the one before; negative ones take away.
        value: What the new elements are.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Contiguous tensor of the dtype of the input.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"pad is not implemented for {get_current_backend()}")
