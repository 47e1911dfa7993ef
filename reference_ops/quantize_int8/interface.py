"""The dispatch interface of quantize_int8, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("quantize_int8")
def quantize_int8(
    x: torch.Tensor,
    block: tuple[int, int] | None = None,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Values as integers of 8 bits from -127 to 127, with a scale for each row or block.

    Args:
        x: Input of any shape and strides. A block with NaN or infinity in it has that as its scale, and is lost.
        block: Rows and columns that share a scale, as (1, 128) or (128, 128); None is one whole row.
        out: Tensors to write the results to; shapes, dtypes and device of the results.
        **kwargs: Options of one backend.

    Returns:
        Values of the shape of x, and the fp32 scale of each block, at least 2**-126: (..., blocks down, blocks across).

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"quantize_int8 is not implemented for {get_current_backend()}")
