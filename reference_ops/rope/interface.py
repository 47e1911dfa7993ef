"""The dispatch interface of rope, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("rope")
def rope(
    x: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Rotary position embedding of pairs (i, i + R / 2) of the last dimension, as Llama and GPT-NeoX have it.

    Args:
        x: Queries or keys of any shape and strides; the last dimension has the pairs.
        cos: Cosines, one for each pair: (..., R / 2), where R elements turn, broadcast to x before it.
        sin: Sines of the same angles, in the shape of cos.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"rope is not implemented for {get_current_backend()}")
