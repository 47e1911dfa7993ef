"""The dispatch interface of avg_pool2d, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("avg_pool2d")
def avg_pool2d(
    x: torch.Tensor,
    kernel_size: int | tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Mean of every window, accumulated in fp32 or wider.

    Args:
        x: Images (..., H, W) with any leading dimensions and strides.
        kernel_size: Length of a window.
        stride: Distance from one window to the next; None means kernel_size.
        padding: What windows reach over either end, at most half of kernel_size.
        ceil_mode: Also take windows that reach over the far end of the padding.
        count_include_pad: Whether padding counts in the divisor of the mean.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor with the leading dimensions and the dtype of the input.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"avg_pool2d is not implemented for {get_current_backend()}")
