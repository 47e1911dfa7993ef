"""The dispatch interface of quantize_fp8, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("quantize_fp8")
def quantize_fp8(
    x: torch.Tensor,
    block: tuple[int, int] | None = None,
    dtype: torch.dtype = torch.float8_e4m3fn,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Values as floats of 8 bits, with a scale for each row or block.

    Args:
        x: Input of any shape and strides. A block with NaN or infinity in it has that as its scale, and is lost.
        block: Rows and columns that share a scale, as (1, 128) or (128, 128); None is one whole row.
        dtype: Of the values: torch.float8_e4m3fn or torch.float8_e5m2.
        out: Tensors to write the results to; shapes, dtypes and device of the results.
        **kwargs: Options of one backend.

    Returns:
        Values of the shape of x, and the fp32 scale of each block, at least 2**-126: (..., blocks down, blocks across).

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"quantize_fp8 is not implemented for {get_current_backend()}")
