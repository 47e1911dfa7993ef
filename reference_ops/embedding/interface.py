"""The dispatch interface of embedding, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("embedding")
def embedding(
    index: torch.Tensor,
    weight: torch.Tensor,
    padding_idx: int | None = None,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Rows of a table, one for each index.

    Args:
        index: Rows of the table, int32 or int64, of any shape; one outside gives NaN.
        weight: Table (V, D) of any strides.
        padding_idx: Row that has no gradient; a negative one counts from the end.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor of the shape of index and one more dimension, in the dtype of weight.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"embedding is not implemented for {get_current_backend()}")
