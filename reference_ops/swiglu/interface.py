"""The dispatch interface of swiglu, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("swiglu")
def swiglu(
    gate: torch.Tensor,
    up: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """SiLU of the gate times a second tensor of the same shape.

    Args:
        gate: Tensor (..., N) that is activated.
        up: Tensor of the same shape that is scaled by the gate.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor (..., N) of the dtype of the input.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"swiglu is not implemented for {get_current_backend()}")
