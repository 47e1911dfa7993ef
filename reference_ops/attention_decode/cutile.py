"""cuTile backend of attention_decode."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]

WAVES = 1  # blocks for each place that the multiprocessors have; measured on sm_90
MOST_SPLITS = 256
UNSPLIT = 4  # tiles of keys, at most, that are not worth a second kernel
COMBINED = 32  # parts that are combined at once
ZERO = ct.PaddingMode.ZERO
LOG2E = math.log2(math.e)
LOWEST = -1e30  # where a maximum begins: -inf would make a NaN of a query that has seen no key yet


@dataclass(frozen=True)
class _Config:
    """A tile of (queries, keys) and the compiler hints that go with it."""

    tile: tuple[int, int]
    most_d: int = 256  # elements of a head, rounded up to a power of two
    num_worker_warps: int = 8
    occupancy: int | None = None
    depth: int = 256  # elements of a head that are multiplied at once

    @functools.cached_property
    def kernel(self):
        kernel = _attention_decode_kernel
        return kernel.replace_hints(num_worker_warps=self.num_worker_warps, occupancy=self.occupancy)


# By bytes of an element and the first major compute capability that they are for; the first for such heads is taken,
# with fewer queries where there are fewer. Chosen by the registers that they need.
CONFIGS = {
    2: {
        8: (_Config((64, 64), 128, 4, 2), _Config((64, 32), 256, 4)),
        9: (_Config((64, 128), 128, 4, 2), _Config((64, 64), 256, 4)),
        12: (_Config((64, 64), 128, 4, 2), _Config((64, 32), 256, 4)),
    },
    4: {
        8: (_Config((32, 16), 128, 4, depth=16), _Config((16, 16), depth=16)),
        10: (_Config((32, 16), 128, depth=16), _Config((16, 16), depth=16)),
        12: (_Config((32, 16), 128, 4, depth=16), _Config((16, 16), depth=16)),
    },
}


def _tanh(t):
    """Hyperbolic tangent to the accuracy that a score needs: an absolute one."""
    e = ct.exp2(t * (2.0 * LOG2E), flush_to_zero=True)
    return 1.0 - ct.truediv(2.0, 1.0 + e, rounding_mode=ct.RoundingMode.APPROX, flush_to_zero=True)


def _weights(ts, top, total, tout, factor, dtype):
    """Exponentials of scores below their maximum so far; what was summed before is brought to the new maximum."""
    new = ct.maximum(top, ct.max(ts, 1, keepdims=True))
    tp = ct.exp2(ts * factor - new * factor, flush_to_zero=True)
    fade = ct.exp2((top - new) * factor, flush_to_zero=True)
    return tp.astype(dtype), new, total * fade + ct.sum(tp, 1, keepdims=True), tout * fade


@ct.kernel
def _attention_decode_kernel(
    Q,
    K,
    V,
    Part,
    Out,
    Lengths,
    m: int,
    window: int,
    squeeze: float,
    factor: float,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILE_D: ConstInt,
    DEPTH: ConstInt,
    SPLIT: ConstBool,
    LENGTHS: ConstBool,
    WINDOW: ConstBool,
    SOFTCAP: ConstBool,
):
    """Out (B * HK, 1, R, D), or Part (B * HK, splits, R, more than TILE_D) of it from a part of the keys.

    The rows R of Q (B, HK, R, D) are the m queries of all heads that share a head of K and V, so that it is read once.
    A row of Part has the logarithm of its weight in column TILE_D.
    """
    splits = Part.shape[1] if SPLIT else 1
    tiles = ct.cdiv(Q.shape[2], TILE_M)
    s, i, head = ct.bid(0) % splits, ct.bid(0) // splits % tiles, ct.bid(0) // splits // tiles
    b, h = head // Q.shape[1], head % Q.shape[1]

    # Of the tiles of keys that are seen, those from `begin` to `end` are this block's
    n = K.shape[2]
    if LENGTHS:
        n = ct.minimum(ct.maximum(ct.load(Lengths, (b,), ()), 0), n).astype(ct.int32)
    place = n - m  # of the key that belongs to the first query
    whole = (place + 1) // TILE_N  # tiles before are seen by all queries
    begin = 0
    if WINDOW:
        begin, whole = ct.maximum(place - window + 1, 0) // TILE_N, 0
    share = ct.cdiv(ct.cdiv(n, TILE_N) - begin, splits)
    begin = begin + s * share
    end = ct.minimum(begin + share, ct.cdiv(n, TILE_N))

    def queries(d, depth):
        return ct.load(Q, (b, h, i, d), (1, 1, TILE_M, depth), padding_mode=ZERO).reshape((TILE_M, depth))

    def keys(d, depth, j):
        tile = (1, 1, depth, TILE_N)
        return ct.load(K, (b, h, d, j), tile, order=(0, 1, 3, 2), padding_mode=ZERO, latency=2).reshape(tile[2:])

    def values(j):
        tile = (1, 1, TILE_N, TILE_D)
        return ct.load(V, (b, h, j, 0), tile, padding_mode=ZERO, latency=2).reshape(tile[2:])

    if DEPTH == TILE_D:
        tq = queries(0, TILE_D)

    def scores(j):
        ts = ct.zeros((TILE_M, TILE_N), ct.float32)
        if DEPTH == TILE_D:
            ts = ct.mma(tq, keys(0, TILE_D, j), ts)
        else:
            for d in range(ct.cdiv(Q.shape[3], DEPTH)):
                ts = ct.mma(queries(d, DEPTH), keys(d, DEPTH, j), ts)
        if SOFTCAP:
            ts = _tanh(ts * squeeze)
        return ts

    def hide(ts, j):
        """Scores without those of keys that a query does not see."""
        column = j * TILE_N + ct.arange(TILE_N, dtype=ct.int32)[None, :]
        own = place + (i * TILE_M + ct.arange(TILE_M, dtype=ct.int32)[:, None]) % m
        seen = column <= own
        if WINDOW:
            seen = seen & (column > own - window)
        return ct.where(seen, ts, -math.inf)

    top = ct.full((TILE_M, 1), LOWEST, ct.float32)
    total = ct.zeros((TILE_M, 1), ct.float32)
    tout = ct.zeros((TILE_M, TILE_D), ct.float32)
    for j in range(begin, end):
        ts = scores(j)
        tv = values(j)
        if j >= whole:
            ts = hide(ts, j)
            if LENGTHS:  # what lies beyond them may be NaN, which times a weight of zero is NaN
                tv = ct.where(j * TILE_N + ct.arange(TILE_N, dtype=ct.int32)[:, None] < n, tv, 0.0).astype(V.dtype)
        tp, top, total, tout = _weights(ts, top, total, tout, factor, V.dtype)
        tout = ct.mma(tp, tv, tout)

    # Queries that see no key of this part give zeros, of weight zero
    lse = top * factor + ct.log2(total)
    tout = tout / ct.where(total == 0.0, 1.0, total)
    if SPLIT:
        ct.store(Part, (head, s, i, 0), tout.reshape((1, 1, TILE_M, TILE_D)), allow_tma=False)
        ct.store(Part, (head, s, i, TILE_D), lse.reshape((1, 1, TILE_M, 1)), allow_tma=False)
    else:
        ct.store(Out, (head, 0, i, 0), tout.astype(Out.dtype).reshape((1, 1, TILE_M, TILE_D)))


@ct.kernel(num_worker_warps=4)
def _attention_decode_combine_kernel(Part, Out, TILE_S: ConstInt, TILE_D: ConstInt):
    """Out (B * HK, 1, R, D) as the mean of its parts by weight, one row to a block."""
    head, r = ct.bid(0) // Out.shape[2], ct.bid(0) % Out.shape[2]

    def parts(s, d, length, padding_mode):
        tile = (1, TILE_S, 1, length)
        return ct.load(Part, (head, s, r, d), tile, padding_mode=padding_mode, allow_tma=False).reshape(tile[1::2])

    top = ct.full((1, 1), LOWEST, ct.float32)
    total = ct.zeros((1, 1), ct.float32)
    tout = ct.zeros((1, TILE_D), ct.float32)
    for s in range(ct.cdiv(Part.shape[1], TILE_S)):
        lse, tpart = parts(s, TILE_D, 1, ct.PaddingMode.NEG_INF), parts(s, 0, TILE_D, ZERO)
        new = ct.maximum(top, ct.max(lse, 0, keepdims=True))
        weight, fade = ct.exp2(lse - new), ct.exp2(top - new)
        total = total * fade + ct.sum(weight, 0, keepdims=True)
        tout = tout * fade + ct.sum(weight * tpart, 0, keepdims=True)
        top = new
    tout = tout / ct.where(total == 0.0, 1.0, total)
    ct.store(Out, (head, 0, r, 0), tout.astype(Out.dtype).reshape((1, 1, 1, TILE_D)), allow_tma=False)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_MOST_BLOCKS = 2**24 - 1  # of one launch
_FAR = 2**31  # strides from here on are out of reach of a kernel's 32-bit indices


def _check_tensors(**tensors):
    """Require tensors (batch, heads, length, D) of one supported dtype on one CUDA device."""
    for name, x in tensors.items():
        if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
            found = getattr(x, "dtype", type(x).__name__)
            raise TypeError(f"{name} is {found}; it must be a tensor of float32, float16, bfloat16")
        q = tensors["q"]
        if x.dtype != q.dtype:
            raise TypeError(f"{name} is {x.dtype}; it must be {q.dtype}, as q is")
        if not x.is_cuda:
            raise ValueError(f"{name} is on {x.device}; it must be on a CUDA device")
        if x.device != q.device:
            raise ValueError(f"{name} is on {x.device}; it must be on {q.device}, as q is")
        if x.ndim != 4:
            raise ValueError(f"{name} has shape {tuple(x.shape)}; it must be (batch, heads, length, D)")
    q, k, v = tensors.values()
    if q.shape[3] > 256:
        raise ValueError(f"q has heads of {q.shape[3]} elements; they must have at most 256")
    if k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3] or q.shape[1] % max(k.shape[1], 1):
        found = f"{tuple(k.shape)} beside q {tuple(q.shape)}"
        raise ValueError(f"k has shape {found}; it must be (B, HK, N, D), B and D those of q, and HK a divisor of H")
    if v.shape != k.shape:
        raise ValueError(f"v has shape {tuple(v.shape)}; it must be {tuple(k.shape)}, that of k")


def _check_options(window, softcap, scale):
    """Require numbers that make sense of the scores."""
    if window is not None and not (isinstance(window, int) and window > 0):
        raise ValueError(f"window is {window!r}; it must be a positive int, or None")
    if not isinstance(softcap, int | float) or not 0 <= softcap < math.inf:
        raise ValueError(f"softcap is {softcap!r}; it must be a positive number, or 0 for none")
    if scale is not None and not (isinstance(scale, int | float) and 0 < scale < math.inf):
        raise ValueError(f"scale is {scale!r}; it must be a positive number, or None")


def _readable(x):
    """Return x, or a copy that TMA can read: neighbours along D, and all else at multiples of 16 bytes."""
    unit = 16 // x.element_size()
    if x.stride(3) == 1 and all(s % unit == 0 for s in x.stride()[:3]) and x.data_ptr() % 16 == 0:
        return x
    *outer, d = x.shape
    return x.new_empty((*outer, ct.cdiv(d, unit) * unit))[..., :d].copy_(x)


def _check_lengths(lengths, q):
    """Require one number of keys for each sequence."""
    if not isinstance(lengths, torch.Tensor) or lengths.dtype not in (torch.int32, torch.int64):
        found = getattr(lengths, "dtype", type(lengths).__name__)
        raise TypeError(f"lengths is {found}; it must be a tensor of int32 or int64, or None")
    if lengths.shape != q.shape[:1] or lengths.device != q.device:
        found = f"{tuple(lengths.shape)} on {lengths.device}"
        raise ValueError(f"lengths is {found}; it must be {tuple(q.shape[:1])} on {q.device}, one for each sequence")


def _overruns(out):
    """Whether TMA, which stores 16 bytes at a time, would write beside `out`."""
    unit = 16 // out.element_size()  # elements in 16 bytes
    axes = {step: n for n, step in zip(out.shape, out.stride(), strict=True) if n > 1}
    length = axes.pop(1, 0)  # of a row; one of a single element is stored without TMA
    return length % unit > 0 and out.data_ptr() % 16 == 0 and all(step % unit == 0 for step in axes)


@functools.lru_cache(maxsize=4096)
def _plan(device, itemsize, heads, rows, n, d):
    """Choose (kernel, parts of the keys, blocks, tile sizes) for so many heads of rows of queries."""
    properties = torch.cuda.get_device_properties(device)
    generations = CONFIGS[itemsize]
    tile_d = max(16, 1 << (d - 1).bit_length())
    configs = generations[max(major for major in generations if major <= properties.major)]
    config = next(config for config in configs if tile_d <= config.most_d)
    tile_m = min(config.tile[0], max(16, 1 << (rows - 1).bit_length()))
    blocks = heads * ct.cdiv(rows, tile_m)
    wanted = WAVES * (config.occupancy or 1) * properties.multi_processor_count // blocks
    tiles = ct.cdiv(n, config.tile[1])
    splits = max(1, min(wanted, tiles, MOST_SPLITS)) if tiles > UNSPLIT else 1
    splits = ct.cdiv(tiles, ct.cdiv(tiles, splits))  # none is left without a tile
    constants = (tile_m, config.tile[1], tile_d, min(tile_d, config.depth), splits > 1)
    return config.kernel, splits, blocks * splits, constants


def _launch(q, k, v, y, lengths, numbers, constants):
    """Launch on Q, K, V (B, HK, ...) and the result, batch by batch where the grid or 32-bit strides do not reach."""
    batch, heads, rows, d = q.shape
    far = any(x.stride(0) >= _FAR for x in (k, v))
    if batch > 1 and (far or batch * heads * rows > _MOST_BLOCKS):
        for i in range(batch):
            one = (x[i : i + 1] for x in (q, k, v, y))
            _launch(*one, None if lengths is None else lengths[i : i + 1], numbers, constants)
        return
    if far:  # the stride of a batch of one is never used
        k, v = (x.as_strided(x.shape, (0, *x.stride()[1:])) for x in (k, v))
    kernel, splits, blocks, tile = _plan(q.device, q.element_size(), batch * heads, rows, k.shape[2], d)
    result = y.view(batch * heads, 1, rows, d)
    part = result  # stands in for arrays that are not there
    if splits > 1:
        part = q.new_empty((batch * heads, splits, rows, tile[2] + 16), dtype=torch.float32)
    arrays = (q, k, v, part, result, result if lengths is None else lengths)
    with torch.cuda.device(q.device):
        stream = torch.cuda.current_stream(q.device)
        ct.launch(stream, (blocks,), kernel, (*arrays, *numbers, *tile, lengths is not None, *constants))
        if splits > 1:
            together = min(COMBINED, 1 << (splits - 1).bit_length())
            arguments = (part, result, together, tile[2])
            ct.launch(stream, (batch * heads * rows,), _attention_decode_combine_kernel, arguments)


@register_impl("attention_decode", backend="cutile")
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
    """Attend to all keys of a cache with the few last queries, the keys split over the multiprocessors."""
    if kwargs:
        raise TypeError(f"attention_decode got unexpected arguments: {', '.join(kwargs)}")
    _check_tensors(q=q, k=k, v=v)
    _check_options(window, softcap, scale)
    if lengths is not None:
        _check_lengths(lengths, q)
    if out is not None and (out.shape != q.shape or out.dtype != q.dtype or out.device != q.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {tuple(q.shape)} of {q.dtype} on {q.device}")
    shared = out is not None and any(
        t.untyped_storage().data_ptr() == out.untyped_storage().data_ptr() for t in (q, k, v)
    )
    direct = out is not None and not shared and out.is_contiguous()
    direct = direct and not _overruns(out[-1:])  # batches may be launched one by one
    y = out if direct else torch.empty_like(q, memory_format=torch.contiguous_format)
    if q.numel() and k.numel():
        d, most = q.shape[3], q.shape[2] + k.shape[2]
        scale = d**-0.5 if scale is None else scale
        numbers = (q.shape[2], min(window or most, most), scale / (softcap or 1.0), LOG2E * (softcap or scale))
        rows = q.reshape(*k.shape[:2], -1, d)  # of all heads that share one of the keys
        arrays = (_readable(rows), _readable(k), _readable(v))
        _launch(*arrays, y, lengths, numbers, (window is not None, softcap > 0))
    else:
        y.zero_()  # no key is seen
    return y if out is None or direct else out.copy_(y)
