"""The dispatch interface of lstm_cell, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("lstm_cell")
def lstm_cell(
    x: torch.Tensor,
    h: torch.Tensor,
    c: torch.Tensor,
    w_ih: torch.Tensor,
    w_hh: torch.Tensor,
    b_ih: torch.Tensor | None = None,
    b_hh: torch.Tensor | None = None,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One step of torch.nn.LSTMCell, the next hidden state and the next cell state, in one kernel.

    Args:
        x: Inputs (..., I) of a step, of any strides.
        h: Hidden states (..., H) before the step.
        c: Cell states (..., H) before the step.
        w_ih: Weight (4 H, I) of the input, for the gates i, f, g, o in this order.
        w_hh: Weight (4 H, H) of the hidden state.
        b_ih: Bias (4 H) beside the product with the input; none is as zeros.
        b_hh: Bias (4 H) beside the product with the hidden state; none is as zeros.
        out: Tensors to write the results to; shapes, dtypes and device of the results.
        **kwargs: Options of one backend.

    Returns:
        The hidden state and the cell state of the next step, both of the shape and dtype of h.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"lstm_cell is not implemented for {get_current_backend()}")
