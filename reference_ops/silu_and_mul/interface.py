"""The dispatch interface of silu_and_mul, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("silu_and_mul")
def silu_and_mul(
    x: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """SiLU of the first half of the last dimension times the second half.

    Args:
        x: Tensor (..., 2 N): N elements that are activated, then N that they scale.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor (..., N) of the dtype of the input.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"silu_and_mul is not implemented for {get_current_backend()}")
