"""The dispatch interface of grouped_matmul, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("grouped_matmul")
def grouped_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    offsets: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Multiply consecutive groups of rows by a matrix each, as in a mixture of experts.

    Args:
        a: Rows (M, K), those of a group one after the other.
        b: Matrices (G, K, N), one for each group; at most 4095.
        offsets: Ends of the groups (G,), or 0 and the ends (G + 1,), int32 or int64; never decreasing, M where larger.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor (M, N) of the dtype of a; rows after the last group are zero.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"grouped_matmul is not implemented for {get_current_backend()}")
