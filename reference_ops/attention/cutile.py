"""cuTile backend of attention."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]

ZERO = ct.PaddingMode.ZERO
LOG2E = math.log2(math.e)
LOWEST = -1e30  # where a maximum begins: -inf would make a NaN of a query that has seen no key yet
MOST = 2.0**64  # a sum of weights, of which the largest may be above 1: products with values are finite


@dataclass(frozen=True)
class _Config:
    """A tile of (queries, keys) and the compiler hints that go with it."""

    tile: tuple[int, int]
    most_d: int = 256  # elements of a head, rounded up to a power of two
    num_worker_warps: int = 8
    occupancy: int | None = None
    depth: int = 256  # elements of a head that are multiplied at once
    least_n: int = 0  # keys, at least
    fixed: bool = False  # for bfloat16 without a window: weights of all keys by the maximum of the first tile of them

    @functools.cached_property
    def kernel(self):
        kernel = _attention_kernel
        return kernel.replace_hints(num_worker_warps=self.num_worker_warps, occupancy=self.occupancy)


# By bytes of an element and the first major compute capability that they are for; of those the first for such heads
# that gives every multiprocessor a block is taken, else the last. Chosen by the registers that they need.
CONFIGS = {
    2: {
        8: (_Config((64, 64), 64, 4), _Config((64, 32), 128), _Config((64, 32), 256, 4)),
        9: (
            _Config((64, 64), 64, 4, 3, fixed=True),
            _Config((128, 128), 128, least_n=2048, fixed=True),
            _Config((64, 128), 128, 4, 2, fixed=True),
            _Config((128, 64), fixed=True),
            _Config((64, 64), 64, 4, 3),
            _Config((64, 128), 128, 4, 2),
            _Config((128, 64)),
            _Config((64, 64)),
        ),
        10: (_Config((128, 128), 128), _Config((128, 64)), _Config((64, 64))),
        12: (_Config((128, 64), 64), _Config((64, 64), 128), _Config((64, 32))),
    },
    4: {8: (_Config((64, 16), 64, depth=16), _Config((32, 16), 128, 4, depth=16), _Config((32, 8), depth=8))},
}
# The same for the gradients: by D, at most, tile and hints of the kernel for queries and of that for keys.
GRADIENTS = {
    2: {
        8: {64: ((64, 64, 8), (64, 64, 8)), 128: ((64, 32, 8), (32, 64, 8)), 256: ((32, 32, 8), (32, 32, 8))},
        9: {64: ((64, 64, 4, 2), (64, 64, 4, 2)), 128: ((128, 64, 8), (64, 128, 8)), 256: ((64, 32, 8), (32, 64, 8))},
        10: {64: ((64, 64, 8), (64, 64, 8)), 128: ((64, 64, 4), (64, 64, 4)), 256: ((64, 32, 8), (32, 16, 4))},
        12: {64: ((64, 64, 8), (64, 64, 8)), 128: ((64, 32, 4), (32, 64, 8)), 256: ((32, 32, 8), (32, 32, 8))},
    },
    4: {8: {256: ((16, 16, 8), (16, 8, 8))}},
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


def _weights_below(base, ts, parts, factor, dtype):
    """Exponentials of scores by one base for all tiles, and their sums of every eighth key, each in a single thread."""
    tp = ct.exp2(ts * factor - base, flush_to_zero=True)
    return tp.astype(dtype), parts + ct.sum(tp.reshape((ts.shape[0], ts.shape[1] // 8, 8)), 1)


@ct.kernel
def _attention_kernel(
    Q,
    K,
    V,
    Out,
    Lse,
    group: int,
    window: int,
    squeeze: float,
    factor: float,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILE_D: ConstInt,
    DEPTH: ConstInt,
    FIXED: ConstBool,
    CAUSAL: ConstBool,
    WINDOW: ConstBool,
    SOFTCAP: ConstBool,
):
    """Out (B, H, M, D) = softmax(Q @ K.T) @ V, a tile of queries to a block; K and V have a head for `group` of Q."""
    tiles = ct.cdiv(Q.shape[2], TILE_M)
    head, i = ct.bid(0) // tiles, ct.bid(0) % tiles
    if CAUSAL:
        i = tiles - 1 - i  # those that see most keys first: what runs last is short
    b, h = head // Q.shape[1], head % Q.shape[1]

    # Tiles of keys from `begin` to `end` are seen, those before `whole` by all queries
    n = K.shape[2]
    place = i * TILE_M + n - Q.shape[2]  # of the key that belongs to the first query
    begin, end, whole = 0, n, n
    if CAUSAL:
        end = ct.minimum(n, place + TILE_M)
        whole = ct.minimum(n, place + 1)
    if WINDOW:
        begin = ct.maximum(place - window + 1, 0) // TILE_N
        end = ct.minimum(end, place + TILE_M - 1 + window)
        whole = 0
    end, whole = ct.maximum(ct.cdiv(end, TILE_N), begin + 1), whole // TILE_N

    def queries(d, depth):
        return ct.load(Q, (b, h, i, d), (1, 1, TILE_M, depth), padding_mode=ZERO).reshape((TILE_M, depth))

    def keys(d, depth, j):
        tile = (1, 1, depth, TILE_N)
        return ct.load(K, (b, h // group, d, j), tile, order=(0, 1, 3, 2), padding_mode=ZERO).reshape(tile[2:])

    def values(j):
        tile = (1, 1, TILE_N, TILE_D)
        return ct.load(V, (b, h // group, j, 0), tile, padding_mode=ZERO).reshape(tile[2:])

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
        own = place + ct.arange(TILE_M, dtype=ct.int32)[:, None]
        seen = column < n
        if CAUSAL:
            seen = seen & (column <= own)
        if WINDOW:
            seen = seen & (column > own - window) & (column < own + window)
        return ct.where(seen, ts, -math.inf)

    top = ct.full((TILE_M, 1), LOWEST, ct.float32)
    total = ct.zeros((TILE_M, 1), ct.float32)
    tout = ct.zeros((TILE_M, TILE_D), ct.float32)
    tp, top, total, tout = _weights(hide(scores(begin), begin), top, total, tout, factor, V.dtype)
    base, parts = top * factor, ct.zeros((TILE_M, 8), ct.float32)
    for j in range(begin + 1, end):
        # The values of one tile are under way in the tensor cores while the weights of the next are computed
        ts = scores(j)
        tout = ct.mma(tp, values(j - 1), tout)
        if j >= whole:
            ts = hide(ts, j)
        if FIXED:
            tp, parts = _weights_below(base, ts, parts, factor, V.dtype)
        else:
            tp, top, total, tout = _weights(ts, top, total, tout, factor, V.dtype)
    tout = ct.mma(tp, values(end - 1), tout)
    if FIXED:
        # Where a score is so far above the base that weights may overflow, all is done again with maxima of all tiles
        total = total + ct.sum(parts, 1, keepdims=True)
        again = ct.max(total) > MOST
        top, total, tout = ct.where(again, LOWEST, top), ct.where(again, 0.0, total), ct.where(again, 0.0, tout)
        for j in range(begin, ct.where(again, end, begin)):
            tp, top, total, tout = _weights(hide(scores(j), j), top, total, tout, factor, V.dtype)
            tout = ct.mma(tp, values(j), tout)

    # A query that sees no key gives zeros
    lse = ct.where(total == 0.0, math.inf, top * factor + ct.log2(total))
    ct.store(Lse, (b, h, i), lse.reshape((1, 1, TILE_M)), allow_tma=False)
    total = ct.where(total == 0.0, 1.0, total)
    tout = ct.truediv(tout, total, rounding_mode=ct.RoundingMode.APPROX, flush_to_zero=True)
    ct.store(Out, (b, h, i, 0), tout.astype(Out.dtype).reshape((1, 1, TILE_M, TILE_D)))


def _seen(own, column, n, window, CAUSAL: ConstBool, WINDOW: ConstBool):
    """Whether queries whose own keys are at `own` see the keys at `column`."""
    seen = column < n
    if CAUSAL:
        seen = seen & (column <= own)
    if WINDOW:
        seen = seen & (column > own - window) & (column < own + window)
    return seen


def _recomputed(ts, lse, squeeze, factor, SOFTCAP: ConstBool):
    """Scores as parts of the soft cap, if there is one, and weights of keys."""
    if SOFTCAP:
        ts = _tanh(ts * squeeze)
    return ts, ct.exp2(ts * factor - lse, flush_to_zero=True)


def _slopes(ts, tp, tgrad, delta, SOFTCAP: ConstBool):
    """Gradient of scores whose weights have the gradient `tgrad`."""
    tds = tp * (tgrad - delta)
    if SOFTCAP:
        tds = tds * (1.0 - ts * ts)
    return tds


@ct.kernel
def _attention_backward_queries_kernel(
    Q,
    K,
    V,
    Out,
    dOut,
    Lse,
    Delta,
    dQ,
    group: int,
    window: int,
    squeeze: float,
    factor: float,
    scale: float,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILE_D: ConstInt,
    DEPTH: ConstInt,
    CAUSAL: ConstBool,
    WINDOW: ConstBool,
    SOFTCAP: ConstBool,
):
    """Gradient of a tile of queries; keeps the sums Delta (B, H, M) of gradient times result for that of the keys."""
    tiles = ct.cdiv(Q.shape[2], TILE_M)
    head, i = ct.bid(0) // tiles, tiles - 1 - ct.bid(0) % tiles
    b, h = head // Q.shape[1], head % Q.shape[1]
    n = K.shape[2]

    # Tiles of keys from `begin` to `end` are seen, those before `whole` by all queries
    place = i * TILE_M + n - Q.shape[2]  # of the key that belongs to the first query
    begin, end, whole = 0, n, n
    if CAUSAL:
        end = ct.minimum(n, place + TILE_M)
        whole = ct.minimum(n, place + 1)
    if WINDOW:
        begin = ct.maximum(place - window + 1, 0) // TILE_N
        end = ct.minimum(end, place + TILE_M - 1 + window)
        whole = 0
    end, whole = ct.cdiv(end, TILE_N), whole // TILE_N

    def rows(A, d, depth):
        return ct.load(A, (b, h, i, d), (1, 1, TILE_M, depth), padding_mode=ZERO).reshape((TILE_M, depth))

    def columns(A, d, depth, j):
        tile = (1, 1, depth, TILE_N)
        return ct.load(A, (b, h // group, d, j), tile, order=(0, 1, 3, 2), padding_mode=ZERO).reshape(tile[2:])

    def keys(j):
        return ct.load(K, (b, h // group, j, 0), (1, 1, TILE_N, TILE_D), padding_mode=ZERO).reshape((TILE_N, TILE_D))

    def hide(tp, j):
        """Weights without those of keys that a query does not see."""
        column = j * TILE_N + ct.arange(TILE_N, dtype=ct.int32)[None, :]
        own = place + ct.arange(TILE_M, dtype=ct.int32)[:, None]
        return ct.where(_seen(own, column, n, window, CAUSAL, WINDOW), tp, 0.0)

    tq, tdout = rows(Q, 0, TILE_D), rows(dOut, 0, TILE_D)
    lse = ct.load(Lse, (b, h, i), (1, 1, TILE_M), padding_mode=ZERO).reshape((TILE_M, 1))
    delta = ct.sum(tdout.astype(ct.float32) * rows(Out, 0, TILE_D).astype(ct.float32), 1, keepdims=True)
    ct.store(Delta, (b, h, i), delta.reshape((1, 1, TILE_M)), allow_tma=False)
    tdq = ct.zeros((TILE_M, TILE_D), ct.float32)
    for j in range(begin, end):
        ts = tgrad = ct.zeros((TILE_M, TILE_N), ct.float32)
        if DEPTH == TILE_D:
            tk = keys(j)
            ts = ct.mma(tq, tk.transpose(), ts)
            tgrad = ct.mma(tdout, columns(V, 0, TILE_D, j), tgrad)
        else:
            for d in range(ct.cdiv(Q.shape[3], DEPTH)):
                ts = ct.mma(rows(Q, d, DEPTH), columns(K, d, DEPTH, j), ts)
                tgrad = ct.mma(rows(dOut, d, DEPTH), columns(V, d, DEPTH, j), tgrad)
            tk = keys(j)
        ts, tp = _recomputed(ts, lse, squeeze, factor, SOFTCAP)
        if j >= whole:
            tp = hide(tp, j)
        tds = _slopes(ts, tp, tgrad, delta, SOFTCAP)
        tdq = ct.mma(tds.astype(K.dtype), tk, tdq)
    ct.store(dQ, (b, h, i, 0), (tdq * scale).astype(dQ.dtype).reshape((1, 1, TILE_M, TILE_D)))


@ct.kernel
def _attention_backward_keys_kernel(
    Q,
    K,
    V,
    dOut,
    Lse,
    Delta,
    dK,
    dV,
    group: int,
    window: int,
    squeeze: float,
    factor: float,
    scale: float,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILE_D: ConstInt,
    DEPTH: ConstInt,
    SPLIT: ConstBool,
    CAUSAL: ConstBool,
    WINDOW: ConstBool,
    SOFTCAP: ConstBool,
):
    """Gradients of a tile of keys and values, summed over the queries of all heads that share them."""
    tiles = ct.cdiv(K.shape[2], TILE_N)
    head, j = ct.bid(0) // tiles, ct.bid(0) % tiles
    b, h = head // K.shape[1], head % K.shape[1]
    n = K.shape[2]

    # Tiles of queries from `begin` to `end` see the keys, those from `whole` on all of them
    offset = n - Q.shape[2]  # from a query to the key that belongs to it
    begin, end, whole = 0, Q.shape[2], 0
    if CAUSAL:
        begin = ct.maximum(j * TILE_N - offset, 0)
        whole = ct.maximum((j + 1) * TILE_N - 1 - offset, 0)
    if WINDOW:
        if not CAUSAL:
            begin = ct.maximum(j * TILE_N - window + 1 - offset, 0)
        end = ct.maximum(ct.minimum(end, (j + 1) * TILE_N - 1 + window - offset), 0)
        whole = end
    begin, end, whole = begin // TILE_M, ct.cdiv(end, TILE_M), ct.cdiv(whole, TILE_M)

    def keys(A, d, depth):
        return ct.load(A, (b, h, j, d), (1, 1, TILE_N, depth), padding_mode=ZERO).reshape((TILE_N, depth))

    def rows(A, one, i):
        return ct.load(A, (b, one, i, 0), (1, 1, TILE_M, TILE_D), padding_mode=ZERO).reshape((TILE_M, TILE_D))

    def columns(A, one, d, depth, i):
        tile = (1, 1, depth, TILE_M)
        return ct.load(A, (b, one, d, i), tile, order=(0, 1, 3, 2), padding_mode=ZERO).reshape(tile[2:])

    def sums(A, one, i):
        return ct.load(A, (b, one, i), (1, 1, TILE_M), padding_mode=ZERO).reshape((1, TILE_M))

    def hide(tp, i):
        """Weights without those of keys that a query does not see."""
        column = j * TILE_N + ct.arange(TILE_N, dtype=ct.int32)[:, None]
        own = i * TILE_M + ct.arange(TILE_M, dtype=ct.int32)[None, :] + offset
        return ct.where(_seen(own, column, n, window, CAUSAL, WINDOW), tp, 0.0)

    def add(tdk, tdv, one, i):
        """Add what comes of a tile of queries. Those behind the last are zeros, of finite weights, and add nothing."""
        ts = tgrad = ct.zeros((TILE_N, TILE_M), ct.float32)
        if DEPTH == TILE_D:
            ts = ct.mma(tk, columns(Q, one, 0, TILE_D, i), ts)
            tgrad = ct.mma(tv, columns(dOut, one, 0, TILE_D, i), tgrad)
        else:
            for d in range(ct.cdiv(Q.shape[3], DEPTH)):
                ts = ct.mma(keys(K, d, DEPTH), columns(Q, one, d, DEPTH, i), ts)
                tgrad = ct.mma(keys(V, d, DEPTH), columns(dOut, one, d, DEPTH, i), tgrad)
        ts, tp = _recomputed(ts, sums(Lse, one, i), squeeze, factor, SOFTCAP)
        if CAUSAL or WINDOW:
            if not SPLIT:
                tp = hide(tp, i)
            elif i < whole:
                tp = hide(tp, i)
        tdv = ct.mma(tp.astype(Q.dtype), rows(dOut, one, i), tdv)
        tds = _slopes(ts, tp, tgrad, sums(Delta, one, i), SOFTCAP)
        return ct.mma(tds.astype(Q.dtype), rows(Q, one, i), tdk), tdv

    tk, tv = keys(K, 0, TILE_D), keys(V, 0, TILE_D)
    tdk = ct.zeros((TILE_N, TILE_D), ct.float32)
    tdv = ct.zeros((TILE_N, TILE_D), ct.float32)
    if SPLIT:  # the compiler makes a loop of its own of the tiles that need no mask
        for one in range(h * group, (h + 1) * group):
            for i in range(begin, end):
                tdk, tdv = add(tdk, tdv, one, i)
    else:  # where that takes more registers than there are
        count = ct.maximum(end - begin, 0)
        for t in range(group * count):
            tdk, tdv = add(tdk, tdv, h * group + t // count, begin + t % count)
    ct.store(dK, (b, h, j, 0), (tdk * scale).astype(dK.dtype).reshape((1, 1, TILE_N, TILE_D)))
    ct.store(dV, (b, h, j, 0), tdv.astype(dV.dtype).reshape((1, 1, TILE_N, TILE_D)))


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


@functools.lru_cache(maxsize=4096)
def _plan(device, itemsize, heads, m, n, d, fixed):
    """Choose (kernel, blocks, constants) for so many heads of m queries of n keys, of fixed bases where they may be."""
    properties = torch.cuda.get_device_properties(device)
    generations = CONFIGS[itemsize]
    tile_d = max(16, 1 << (d - 1).bit_length())
    for config in generations[max(major for major in generations if major <= properties.major)]:
        blocks = heads * ct.cdiv(m, config.tile[0])
        fits = tile_d <= config.most_d and n >= config.least_n and fixed >= config.fixed
        if fits and blocks >= properties.multi_processor_count:
            break
    return config.kernel, blocks, (*config.tile, tile_d, min(tile_d, config.depth), config.fixed)


def _overruns(out):
    """Whether TMA, which stores 16 bytes at a time, would write beside `out`."""
    unit = 16 // out.element_size()  # elements in 16 bytes
    axes = {step: n for n, step in zip(out.shape, out.stride(), strict=True) if n > 1}
    length = axes.pop(1, 0)  # of a row; one of a single element is stored without TMA
    return length % unit > 0 and out.data_ptr() % 16 == 0 and all(step % unit == 0 for step in axes)


def _reachable(*arrays):
    """Arrays of the same batch, in parts that a grid and 32-bit strides reach."""
    batch, heads, m = arrays[0].shape[:3]
    far = any(x.stride(0) >= _FAR for x in arrays)
    if batch > 1 and (far or batch * heads * max(m, arrays[1].shape[2]) > _MOST_BLOCKS):
        for one in zip(*(x.split(1) for x in arrays), strict=True):
            yield from _reachable(*one)
    else:  # the stride of a batch of one is never used
        yield [x.as_strided(x.shape, (0, *x.stride()[1:])) for x in arrays] if far else arrays


def _numbers(q, k, window, softcap, scale):
    """What kernels take beside arrays: heads of q for one of k, the window, factors before and after the soft cap."""
    most = q.shape[2] + k.shape[2]
    return q.shape[1] // k.shape[1], min(window or most, most), scale / (softcap or 1.0), LOG2E * (softcap or scale)


def _launch(arrays, causal, window, softcap, scale):
    q, k = arrays[:2]
    batch, heads, m, d = q.shape
    fixed = q.dtype == torch.bfloat16 and window is None
    kernel, blocks, tile = _plan(q.device, q.element_size(), batch * heads, m, k.shape[2], d, fixed)
    constants = (*tile, causal, window is not None, softcap > 0)
    numbers = _numbers(q, k, window, softcap, scale)
    with torch.cuda.device(q.device):
        ct.launch(torch.cuda.current_stream(q.device), (blocks,), kernel, (*arrays, *numbers, *constants))


def _for_each_query(q):
    """Room for a float32 to each query, in rows that begin at multiples of 16 bytes, so that TMA reads them."""
    *outer, m, _ = q.shape
    return torch.empty((*outer, ct.cdiv(m, 4) * 4), dtype=torch.float32, device=q.device)[..., :m]


def _forward(q, k, v, y, *options):
    """Write the result to y, and return the logarithms of its weights for the gradient."""
    lse = _for_each_query(q)
    if q.numel() and k.numel():
        for arrays in _reachable(_readable(q), _readable(k), _readable(v), y, lse):
            _launch(arrays, *options)
    else:
        y.zero_()  # no key is seen
    return lse


@functools.cache
def _hinted(kernel, num_worker_warps, occupancy=None):
    """Kernel with hints, the same for all shapes."""
    return kernel.replace_hints(num_worker_warps=num_worker_warps, occupancy=occupancy)


@functools.lru_cache(maxsize=4096)
def _gradient_plan(device, itemsize, d):
    """Choose (kernel, tile sizes) for the gradient of queries and for that of keys, and whether the latter is split."""
    properties = torch.cuda.get_device_properties(device)
    generations = GRADIENTS[itemsize]
    tiles = generations[max(major for major in generations if major <= properties.major)]
    tile_d = max(16, 1 << (d - 1).bit_length())
    most = min(d for d in tiles if d >= tile_d)
    sizes = (tile_d, min(tile_d, 16) if itemsize == 4 else tile_d)
    queries = _attention_backward_queries_kernel
    keys = _attention_backward_keys_kernel
    plans = [
        (_hinted(kernel, *hints), (m, n, *sizes))
        for kernel, (m, n, *hints) in zip((queries, keys), tiles[most], strict=True)
    ]
    split = itemsize == 2 and tile_d <= 128 and properties.major in (9, 10)  # where there are registers for it
    return *plans, split


def _launch_backward(arrays, causal, window, softcap, scale):
    q, k, v, y, dy, lse, delta, dq, dk, dv = arrays
    batch, heads, m, d = q.shape
    queries, keys, split = _gradient_plan(q.device, q.element_size(), d)
    numbers = (*_numbers(q, k, window, softcap, scale), scale)
    constants = (causal, window is not None, softcap > 0)
    rows = (q, k, v, y, dy, lse, delta, dq)
    columns = (q, k, v, dy, lse, delta, dk, dv)
    with torch.cuda.device(q.device):
        stream = torch.cuda.current_stream(q.device)
        kernel, tile = queries
        blocks = batch * heads * ct.cdiv(m, tile[0])
        ct.launch(stream, (blocks,), kernel, (*rows, *numbers, *tile, *constants))
        kernel, tile = keys
        blocks = batch * k.shape[1] * ct.cdiv(k.shape[2], tile[1])
        ct.launch(stream, (blocks,), kernel, (*columns, *numbers, *tile, split, *constants))


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, *options):
        y = torch.empty_like(q, memory_format=torch.contiguous_format)
        lse = _forward(q, k, v, y, *options)
        ctx.save_for_backward(q, k, v, y, lse)
        ctx.options = options
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        q, k, v, y, lse = ctx.saved_tensors
        empty = torch.empty_like if q.numel() and k.numel() else torch.zeros_like
        dq, dk, dv = (empty(x, memory_format=torch.contiguous_format) for x in (q, k, v))
        if q.numel() and k.numel():
            arrays = [_readable(x) for x in (q, k, v, y, dy)]
            for part in _reachable(*arrays, lse, _for_each_query(q), dq, dk, dv):
                _launch_backward(part, *ctx.options)
        return dq, dk, dv, None, None, None, None


@register_impl("attention", backend="cutile")
def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    window: int | None = None,
    softcap: float = 0.0,
    scale: float | None = None,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Attend to keys and values: softmax(scale * q @ k.mT) @ v, many queries at once."""
    if kwargs:
        raise TypeError(f"attention got unexpected arguments: {', '.join(kwargs)}")
    _check_tensors(q=q, k=k, v=v)
    _check_options(window, softcap, scale)
    if out is not None and (out.shape != q.shape or out.dtype != q.dtype or out.device != q.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {tuple(q.shape)} of {q.dtype} on {q.device}")
    options = (causal, window, softcap, max(q.shape[3], 1) ** -0.5 if scale is None else scale)
    if torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)):
        if out is not None:
            raise ValueError("out is given and an input requires a gradient; use torch.no_grad(), or leave out away")
        return _Attention.apply(q, k, v, *options)
    shared = out is not None and any(
        t.untyped_storage().data_ptr() == out.untyped_storage().data_ptr() for t in (q, k, v)
    )
    direct = out is not None and not shared and max(out.stride()[1:]) < _FAR
    direct = direct and not _overruns(out[-1:])  # batches may be launched one by one
    y = out if direct else torch.empty_like(q, memory_format=torch.contiguous_format)
    _forward(q, k, v, y, *options)
    return y if out is None or direct else out.copy_(y)
