"""The dispatch interface of linear_cross_entropy, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("linear_cross_entropy")
def linear_cross_entropy(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Cross entropy of hidden @ weight.T and target classes, without the logits in memory.

    Args:
        hidden: Vectors (..., K), of any strides, whose products with the weight are the logits.
        weight: Matrix (V, K) of the dtype of hidden, of any strides; a vector for each of V classes.
        target: Classes (...), int32 or int64; one outside of [0, V) makes its loss NaN.
        ignore_index: Class of rows that do not count; their loss and gradient are zero.
        label_smoothing: Part of the target that is spread over all classes, from 0 to 1.
        reduction: `mean` over the rows that count, `sum`, or `none`.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Loss in the dtype of hidden; of the shape of target for `"none"`, else a scalar.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"linear_cross_entropy is not implemented for {get_current_backend()}")
