"""The dispatch interface of transpose, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("transpose")
def transpose(
    x: torch.Tensor,
    dim0: int = -2,
    dim1: int = -1,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """A contiguous copy with two dimensions exchanged.

    Args:
        x: Input of any shape and strides.
        dim0: One of the dimensions to exchange.
        dim1: The other.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Contiguous tensor of the dtype of the input.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"transpose is not implemented for {get_current_backend()}")
