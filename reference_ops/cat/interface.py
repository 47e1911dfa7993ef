"""The dispatch interface of cat, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("cat")
def cat(
    tensors: list[torch.Tensor] | tuple[torch.Tensor, ...],
    dim: int = 0,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Several tensors one behind the other along a dimension.

    Args:
        tensors: Inputs of any strides; empty ones of one dimension are skipped.
        dim: Dimension in which their shapes may differ.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Contiguous tensor of the dtype of the input.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"cat is not implemented for {get_current_backend()}")
