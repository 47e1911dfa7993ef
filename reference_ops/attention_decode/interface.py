"""The dispatch interface of attention_decode, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("attention_decode")
def attention_decode(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lengths: torch.Tensor | None = None,
    window: int | None = None,
    softcap: float = 0.0,
    scale: float | None = None,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Attend to all keys of a cache with the few last queries, the keys split over the multiprocessors.

    Args:
        q: Queries (B, H, M, D) of the last M keys of each sequence; D is at most 256.
        k: Keys (B, HK, N, D), where HK divides H: each serves H / HK heads of the queries.
        v: Values, of the shape of k.
        lengths: How many of the N keys each sequence has (B,), int32 or int64; all where it is None.
        window: See only keys that are less than so many places before the query's own.
        softcap: Where positive, scores become softcap * tanh(score / softcap).
        scale: Factor of the scores; 1 / sqrt(D) where it is None.
        out: Tensor to write the result to; shape, dtype and device of the result.
        **kwargs: Options of one backend.

    Returns:
        Tensor of the shape and dtype of q.

    Raises:
        TypeError: A dtype is not one of float32, float16, bfloat16, or an option is unknown.
        ValueError: A shape, device or `out` does not fit.
    """
    raise NotImplementedError(f"attention_decode is not implemented for {get_current_backend()}")
