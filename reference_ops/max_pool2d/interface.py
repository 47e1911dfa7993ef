"""The dispatch interface of max_pool2d, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("max_pool2d")
def max_pool2d(
    x: torch.Tensor,
    kernel_size: int | tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    ceil_mode: bool = False,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Largest value of every window; NaN where there is one.

    Args:
        x: Images (..., H, W) with any leading dimensions and strides.
        kernel_size: Length of a window.
        stride: Distance from one window to the next; None means kernel_size.
        padding: What windows reach over either end, at most half of kernel_size.
        dilation: Distance between neighbours in a window.
        ceil_mode: Also take windows that reach over the far end of the padding.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor with the leading dimensions and the dtype of the input.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"max_pool2d is not implemented for {get_current_backend()}")
