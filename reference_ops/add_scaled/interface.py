"""The dispatch interface of add_scaled, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("add_scaled")
def add_scaled(
    x: torch.Tensor,
    y: torch.Tensor,
    z: torch.Tensor,
    alpha: float = 1.0,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Compute x + alpha * y * z element by element.

    Args:
        x: Input of any shape.
        y: Input that broadcasts with x.
        z: Input that broadcasts with x.
        alpha: Scalar of the formula.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor of the broadcast shape and the dtype of the inputs.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"add_scaled is not implemented for {get_current_backend()}")
