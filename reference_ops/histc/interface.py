"""The dispatch interface of histc, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("histc")
def histc(
    x: torch.Tensor,
    bins: int = 100,
    min: float = 0,
    max: float = 0,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Counts of the elements in equal bins between two limits.

    Args:
        x: Input of any shape; one whose elements have gaps between them in memory is copied.
        bins: How many bins; the last one includes its upper end.
        min: Lower end of the first bin; what is lower is not counted, nor is NaN.
        max: Upper end of the last bin; as much as min means the extremes of x, for which the host waits.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor (bins,) in the dtype of x, but float32 where that has 16 bits.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"histc is not implemented for {get_current_backend()}")
