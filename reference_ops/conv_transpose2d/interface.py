"""The dispatch interface of conv_transpose2d, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("conv_transpose2d")
def conv_transpose2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    output_padding: int | tuple[int, int] = 0,
    groups: int = 1,
    dilation: int | tuple[int, int] = 1,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Convolve images (N, C, H, W) transposed.

    Args:
        x: Input (N, C, H, W).
        weight: Filters (C, O / groups, KH, KW).
        stride: Steps of the filter in the result for a step in x.
        padding: Elements of the result that are left out at both ends.
        output_padding: Elements that the result has more at its end.
        groups: Parts of the channels that have filters of their own.
        dilation: Steps between the elements of the filter.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor (N, O, ...) of the dtype of x; channels last in memory where x is.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"conv_transpose2d is not implemented for {get_current_backend()}")
