"""The dispatch interface of attention_varlen, the same for every backend."""

from typing import Any

import torch

from ..backend import dispatch
from ..backend import get_current_backend


@dispatch("attention_varlen")
def attention_varlen(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int | None = None,
    causal: bool = False,
    window: int | None = None,
    softcap: float = 0.0,
    scale: float | None = None,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Attend to keys and values of sequences of different lengths, packed one after another.

    Args:
        q: Queries (rows, H, D) of all sequences, one after another; D is at most 256.
        k: Keys (rows, HK, D) likewise, where HK divides H: each serves H / HK heads of the queries.
        v: Values, of the shape of k.
        cu_seqlens_q: Row of q where each sequence begins, and that where the last ends: int32 (B + 1,).
        cu_seqlens_k: The same of k and v.
        max_seqlen_q: Queries of the longest sequence, or more; rows beyond are not computed.
        max_seqlen_k: Keys of the longest sequence, or more, which save a gradient idle blocks; all where it is None.
        causal: Whether a query sees no key after its own; the last query belongs to the last key.
        window: See only keys that are less than so many places away.
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
    raise NotImplementedError(f"attention_varlen is not implemented for {get_current_backend()}")
