"""The dispatch interface of bincount, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("bincount")
def bincount(
    x: torch.Tensor,
    minlength: int = 0,
    bins: int | None = None,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Counts of each value among integers that are not negative.

    Args:
        x: Input of any shape; one whose elements have gaps between them in memory is copied.
        minlength: Fewest counts, where bins is None.
        bins: How many counts; other values are left out. None counts all up to the largest, and the host waits.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor of int64, (bins,), or as long as minlength or the largest value and one, whichever is more.

    Raises:
        TypeError: A dtype is not one of int32, int64, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"bincount is not implemented for {get_current_backend()}")
