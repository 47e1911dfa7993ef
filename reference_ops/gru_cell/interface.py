"""The dispatch interface of gru_cell, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("gru_cell")
def gru_cell(
    x: torch.Tensor,
    h: torch.Tensor,
    w_ih: torch.Tensor,
    w_hh: torch.Tensor,
    b_ih: torch.Tensor | None = None,
    b_hh: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """One step of torch.nn.GRUCell, the next hidden state, in one kernel.

    Args:
        x: Inputs (..., I) of a step, of any strides.
        h: Hidden states (..., H) before the step.
        w_ih: Weight (3 H, I) of the input, for the gates r, z, n in this order.
        w_hh: Weight (3 H, H) of the hidden state.
        b_ih: Bias (3 H) beside the product with the input; none is as zeros.
        b_hh: Bias (3 H) beside the product with the hidden state; none is as zeros.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        The hidden state of the next step, of the shape and dtype of h.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"gru_cell is not implemented for {get_current_backend()}")
