"""cuTile backend of dropout."""

import functools
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]

WORD = 1024  # neighbours that take the same word of the four of their counters; it decides what a seed drops
ROUNDS = 7  # of Philox 4x32, the fewest that pass BigCrush: Salmon et al., "Parallel random numbers", 2011
HINTS = {  # by the bytes of an element; measured on sm_90
    2: {"occupancy": 6, "num_worker_warps": 4},
    4: {"occupancy": 5, "num_worker_warps": 4},
}


def _multiply(a, factor):
    """High and low word of a product of 32-bit words."""
    product = a.astype(ct.uint64) * ct.uint64(factor)
    return (product >> ct.uint64(32)).astype(ct.uint32), product.astype(ct.uint32)


def _philox(counter, seed_low, seed_high):
    """Four random words for each 64-bit counter."""
    a, b = counter.astype(ct.uint32), (counter >> ct.uint64(32)).astype(ct.uint32)
    c, d = ct.zeros(counter.shape, ct.uint32), ct.zeros(counter.shape, ct.uint32)
    key, other = ct.uint32(seed_low), ct.uint32(seed_high)
    for _ in ct.static_iter(range(ROUNDS)):
        high, low = _multiply(a, 0xD2511F53)
        high2, low2 = _multiply(c, 0xCD9E8D57)
        a, b, c, d = high2 ^ b ^ key, low2, high ^ d ^ other, low
        key, other = key + ct.uint32(0x9E3779B9), other + ct.uint32(0xBB67AE85)
    return a, b, c, d


def _drop_runs(X, Y, start, seed_low, seed_high, threshold, scale, WORD, WHOLE):
    """Four runs of X (N,) from `start`; with WHOLE they end inside, and nothing asks whether they do."""
    places, insides, txs = (), (), ()
    for k in ct.static_iter(range(4)):
        places += (start + (k * WORD + ct.arange(WORD, dtype=ct.int32)),)
        insides += (None if WHOLE else places[k] < X.shape[0],)
    for k in ct.static_iter(range(4)):  # on their way while the words are drawn
        txs += (ct.gather(X, places[k], mask=insides[k], check_bounds=False),)
    counter = start // 4 + ct.arange(WORD, dtype=ct.int64)
    words = _philox(counter.astype(ct.uint64), seed_low, seed_high)
    for k in ct.static_iter(range(4)):
        factor = ct.where(words[k] >= ct.uint32(threshold), scale, 0.0)  # a NaN that is dropped stays one
        ty = (txs[k].astype(ct.float32) * factor).astype(Y.dtype)
        ct.scatter(Y, places[k], ty, mask=insides[k], check_bounds=False)


@ct.kernel
def _dropout_kernel(
    X: ct.IndexedWithInt64,
    Y: ct.IndexedWithInt64,
    seed_low: int,
    seed_high: int,
    threshold: int,
    scale: float,
    WORD: ConstInt,
):
    """Four runs of X (N,): what draws less than the threshold is dropped, the rest scaled."""
    start = ct.int64(ct.bid(0)) * (4 * WORD)
    if start + 4 * WORD <= X.shape[0]:
        _drop_runs(X, Y, start, seed_low, seed_high, threshold, scale, WORD, True)
    else:
        _drop_runs(X, Y, start, seed_low, seed_high, threshold, scale, WORD, False)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _signed(word):
    """The 32-bit integer with the bits of an unsigned word, as a kernel takes it."""
    return word - 2**32 if word >= 2**31 else word


@functools.cache
def _kernel(itemsize):
    """Kernel with the hints for elements of so many bytes."""
    kernel = _dropout_kernel
    return kernel.replace_hints(**HINTS[min(itemsize, max(HINTS))])


def _drop(x, seed, p, out=None):
    # In place, or through a tensor of its own where `out` is strided or overlaps `x` otherwise
    direct = out is not None and out.is_contiguous()
    if direct and out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
        direct = x.is_contiguous() and out.data_ptr() == x.data_ptr()
    y = out if direct else torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel():
        threshold = min(int(p * 2**32), 2**32 - 1)
        words = [_signed(word) for word in (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF, threshold)]
        scale = 1.0 / (1.0 - p) if p < 1 else 0.0
        arguments = (x.reshape(-1), y.view(-1), *words, scale, WORD)
        with torch.cuda.device(x.device):
            stream = torch.cuda.current_stream(x.device)
            grid = (ct.cdiv(x.numel(), 4 * WORD),)
            ct.launch(stream, grid, _kernel(x.element_size()), arguments)
    return y if out is None or direct else out.copy_(y)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, seed, p):
        ctx.constants = (seed, p)
        return _drop(x, seed, p)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        return _drop(dy, *ctx.constants), None, None


@register_impl("dropout", backend="cutile")
def dropout(
    x: torch.Tensor,
    seed: int,
    p: float = 0.5,
    training: bool = True,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Elements set to zero at random, the others scaled up; a seed decides which, also in the gradient."""
    if kwargs:
        raise TypeError(f"dropout got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    if not isinstance(seed, int):
        raise TypeError(f"seed is {seed!r}; it must be an int")
    if not 0 <= p <= 1:
        raise ValueError(f"p is {p!r}; it must lie between 0 and 1")
    if out is not None and (out.shape != x.shape or out.dtype != x.dtype or out.device != x.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {tuple(x.shape)} of {x.dtype} on {x.device}")
    if x.requires_grad and torch.is_grad_enabled() and out is not None:
        raise ValueError("out is given and x requires a gradient; call it without out, or under torch.no_grad()")
    if not training or p == 0:
        return x.clone(memory_format=torch.contiguous_format) if out is None else out.copy_(x)
    if x.requires_grad and torch.is_grad_enabled():
        return _Dropout.apply(x, seed, p)
    return _drop(x, seed, p, out)
