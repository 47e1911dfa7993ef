"""What scale_add computes, for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("scale_add")
def scale_add(
    x: torch.Tensor,
    y: torch.Tensor,
    alpha: float = 1.0,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """x + alpha * y, element by element."""
    raise NotImplementedError(f"scale_add is not implemented for {get_current_backend()}")
