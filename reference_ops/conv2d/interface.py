"""The dispatch interface of conv2d, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("conv2d")
def conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] | str = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Convolve images (N, C, H, W).

    Args:
        x: Input (N, C, H, W).
        weight: Filters (O, C / groups, KH, KW).
        stride: Steps between the positions of the filter.
        padding: Zeros around x; "same" keeps its size, "valid" is none.
        dilation: Steps between the elements of the filter.
        groups: Parts of the channels that have filters of their own.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor (N, O, ...) of the dtype of x; channels last in memory where x is.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"conv2d is not implemented for {get_current_backend()}")
