"""The dispatch interface of scaled_matmul, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("scaled_matmul")
def scaled_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    out_dtype: torch.dtype = torch.bfloat16,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Multiply matrices of 8-bit floats and their scales: a @ b in fp32.

    Args:
        a: Matrix (M, K) of 8-bit floats.
        b: Matrix (K, N) of the same dtype; the transpose of a contiguous (N, K) suits sm_90 best.
        scale_a: Of a, fp32: one element, (M, 1) for each row, or (M, K / 128) for each 128 elements of one.
        scale_b: Of b, fp32: one element, (1, N) for each column, or beside blocks of a (K / 128, N / 128).
        out_dtype: Of the result: torch.bfloat16, torch.float16 or torch.float32.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor (M, N) of `out_dtype`.

    Raises:
        TypeError: A dtype is not one of float8_e4m3fn, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
        NotImplementedError: The GPU is older than compute capability 9.0: cuTile has no products of 8-bit floats there.
    """
    raise NotImplementedError(f"scaled_matmul is not implemented for {get_current_backend()}")
