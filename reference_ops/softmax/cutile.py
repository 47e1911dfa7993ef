"""cuTile backend of softmax."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]

LOG2E = math.log2(math.e)
ROW = 16384  # elements of a row that a block holds in registers; a longer row is looped over
TILE_N = 2048  # elements of one of the tiles that make up such a row: 16 bytes of bf16 for each of 256 threads
HELD = 2  # tiles of a row, and of its gradient, that are held as fp32 at most; halves of more are held as they are
BLOCK = 4096  # elements of several short rows together, and of the tiles of a row that is looped over
SIDE_BY_SIDE = 32  # rows whose elements are neighbours in memory are loaded together
MAX_BLOCKS = 2**24 - 1  # along one axis of a grid
HINTS = {  # by the words of 32 bits that a block holds, at most; measured on sm_90
    8192: {"occupancy": 4, "num_worker_warps": 8},
    12288: {"occupancy": ct.ByTarget(sm_90=4, default=3), "num_worker_warps": 8},
    16384: {"occupancy": ct.ByTarget(sm_90=3, default=2), "num_worker_warps": 8},
    20480: {"occupancy": 2, "num_worker_warps": 8},
}


def _wide(t):
    """A tile in the dtype that is computed in."""
    return t.astype(ct.static_eval(ct.float64 if t.dtype == ct.float64 else ct.float32))


def _wide_again(t, TILES: ConstInt):
    """The same a second time; in a row of many tiles the result is not held from the first time on."""
    if TILES > HELD and t.dtype in (ct.float16, ct.bfloat16):
        # A zero that the compiler does not know, so that it does not see that both are the same
        t = ct.bitcast(ct.bitcast(t, ct.uint16) ^ ct.bid(1).astype(ct.uint16), t.dtype)
    return _wide(t)


def _part(A, index, tile):
    """Tile of A; zero outside."""
    # Plain loads: all tiles of a row are under way at once, and need no shared memory
    return ct.load(A, index, tile, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)


def _load(A, index, tile):
    """Tile of A in the dtype that is computed in; zero outside."""
    return _wide(_part(A, index, tile))


def _exp(t):
    return ct.exp2(t * LOG2E, flush_to_zero=True)


@ct.kernel
def _softmax_kernel(X, Y, TILE_M: ConstInt, TILE_R: ConstInt, TILE_N: ConstInt, TILES: ConstInt):
    """Rows along N of X (M, R, N), held in registers: read once, written once."""
    blocks = ct.cdiv(X.shape[1], TILE_R)
    m, r = ct.bid(0) // blocks, ct.bid(0) % blocks
    lane = ct.arange(TILE_N, dtype=ct.int32)

    # Largest value, lane by lane, then of the row; what lies outside must neither win nor count
    txs = ()
    for j in ct.static_iter(range(TILES)):
        txs += (_load(X, (m, r, j), (TILE_M, TILE_R, TILE_N)),)
    txs = (*txs[:-1], ct.where(lane < X.shape[2] - (TILES - 1) * TILE_N, txs[-1], -math.inf))
    top = txs[0]
    for tx in ct.static_iter(txs[1:]):
        top = ct.maximum(top, tx)
    top = ct.max(top, 2, keepdims=True)

    # Sum of exponentials; a NaN, an inf or a row of nothing but -inf makes it NaN
    total = ct.zeros((TILE_M, TILE_R, TILE_N), top.dtype)
    tys = ()
    for tx in ct.static_iter(txs):
        ty = _exp(tx - top)
        total = total + ty
        tys += (ty,)
    scale = 1.0 / ct.sum(total, 2, keepdims=True)
    for j in ct.static_iter(range(TILES)):
        ct.store(Y, (m, r, j), (tys[j] * scale).astype(Y.dtype), allow_tma=False)


@ct.kernel
def _softmax_long_kernel(
    X: ct.IndexedWithInt64, Y: ct.IndexedWithInt64, TILE_M: ConstInt, TILE_R: ConstInt, TILE_N: ConstInt
):
    """Rows along N of X (M, R, N) of any length: an online pass over each, and one that writes."""
    tile = (TILE_M, TILE_R, TILE_N)
    blocks = ct.int32(ct.cdiv(X.shape[1], TILE_R))
    m, r = ct.bid(0) // blocks, ct.bid(0) % blocks
    lane = ct.arange(TILE_N, dtype=ct.int64)

    # Largest value so far and the sum of exponentials relative to it
    ACC = ct.static_eval(ct.float64 if X.dtype == ct.float64 else ct.float32)
    top = ct.full((TILE_M, TILE_R, 1), -math.inf, ACC)
    total = ct.zeros((TILE_M, TILE_R, 1), ACC)
    for j in range(ct.int32(ct.cdiv(X.shape[2], TILE_N))):
        tx = ct.where(lane < X.shape[2] - ct.int64(j) * TILE_N, _load(X, (m, r, j), tile), -math.inf)
        new = ct.maximum(top, ct.max(tx, 2, keepdims=True))
        base = ct.where(new == -math.inf, 0.0, new)  # -inf - -inf would be NaN, and a later tile may be finite
        total = total * _exp(top - base) + ct.sum(_exp(tx - base), 2, keepdims=True)
        top = new

    scale = 1.0 / total
    for j in range(ct.int32(ct.cdiv(X.shape[2], TILE_N))):
        ct.store(Y, (m, r, j), (_exp(_load(X, (m, r, j), tile) - top) * scale).astype(Y.dtype), allow_tma=False)


@ct.kernel
def _softmax_backward_kernel(dY, Y, dX, TILE_M: ConstInt, TILE_R: ConstInt, TILE_N: ConstInt, TILES: ConstInt):
    """Gradient of rows along N, from the result Y (M, R, N) and its gradient dY, both held in registers."""
    tile = (TILE_M, TILE_R, TILE_N)
    blocks = ct.cdiv(Y.shape[1], TILE_R)
    m, r = ct.bid(0) // blocks, ct.bid(0) % blocks

    inside = ct.arange(TILE_N, dtype=ct.int32) < Y.shape[2] - (TILES - 1) * TILE_N
    tys, tdys = (), ()
    for j in ct.static_iter(range(TILES)):
        tys, tdys = (*tys, _part(Y, (m, r, j), tile)), (*tdys, _part(dY, (m, r, j), tile))
    # Zero already; to say it, with `inside` from before the loads, spares a branch around each of them
    tdys = (*tdys[:-1], ct.where(inside, tdys[-1], ct.zeros(tile, dY.dtype)))
    dot = ct.zeros(tile, ct.static_eval(ct.float64 if Y.dtype == ct.float64 else ct.float32))
    for j in ct.static_iter(range(TILES)):
        dot = dot + _wide(tdys[j]) * _wide(tys[j])
    dot = ct.sum(dot, 2, keepdims=True)
    for j in ct.static_iter(range(TILES)):
        tdx = _wide_again(tys[j], TILES) * (_wide_again(tdys[j], TILES) - dot)
        ct.store(dX, (m, r, j), tdx.astype(dX.dtype), allow_tma=False)


@ct.kernel
def _softmax_long_backward_kernel(
    dY: ct.IndexedWithInt64,
    Y: ct.IndexedWithInt64,
    dX: ct.IndexedWithInt64,
    TILE_M: ConstInt,
    TILE_R: ConstInt,
    TILE_N: ConstInt,
):
    """Gradient of rows along N of any length, in two passes."""
    tile = (TILE_M, TILE_R, TILE_N)
    blocks = ct.int32(ct.cdiv(Y.shape[1], TILE_R))
    m, r = ct.bid(0) // blocks, ct.bid(0) % blocks
    dot = ct.zeros(tile, ct.static_eval(ct.float64 if Y.dtype == ct.float64 else ct.float32))
    for j in range(ct.int32(ct.cdiv(Y.shape[2], TILE_N))):
        dot = dot + _load(dY, (m, r, j), tile) * _load(Y, (m, r, j), tile)
    dot = ct.sum(dot, 2, keepdims=True)
    for j in range(ct.int32(ct.cdiv(Y.shape[2], TILE_N))):
        ty, tdy = _load(Y, (m, r, j), tile), _load(dY, (m, r, j), tile)
        tdx = ty * (tdy - dot)
        ct.store(dX, (m, r, j), tdx.astype(dX.dtype), allow_tma=False)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.cache
def _hinted(kernel, elements):
    """Kernel with the hints for a block of so many elements."""
    return kernel.replace_hints(**HINTS[next((n for n in HINTS if n >= elements), max(HINTS))])


@functools.lru_cache(maxsize=4096)
def _plan(m, r, n, most, block, wide):
    """Choose (whether rows are too long for registers, grid, constants) for rows (M, R, N)."""
    tile_r = min(_power_of_two(r), SIDE_BY_SIDE)
    tile_n = min(_power_of_two(n), TILE_N // tile_r)
    tiles = ct.cdiv(n, tile_n)
    long = wide or tile_r * tile_n * tiles > most
    if long:
        tile_n, tiles = min(_power_of_two(n), block // tile_r), 1
    tile_m, most = 1, block if long else BLOCK
    while tile_m < m and (
        2 * tile_m * tile_r * tile_n * tiles <= most or ct.cdiv(m, tile_m) * ct.cdiv(r, tile_r) > MAX_BLOCKS
    ):
        tile_m *= 2
    grid = (ct.cdiv(m, tile_m) * ct.cdiv(r, tile_r),)
    tile = (tile_m, tile_r, tile_n)
    return long, grid, tile if long else (*tile, tiles)


def _rows(x, dim):
    """View `x` as (M, R, N), where N is `dim`; a copy only where its strides cannot express that."""
    shape = x.shape or (1,)
    m, n, r = math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])
    return x.reshape(m, n, r).transpose(1, 2) if r > 1 else x.reshape(m, 1, n)


def _is_aligned(views):
    """Whether all rows can be read 16 bytes at a time."""
    return all(
        v.stride(2) == 1 and v.data_ptr() % 16 == 0 and all(s * v.element_size() % 16 == 0 for s in v.stride()[:2])
        for v in views
    )


def _launch(kernel, long_kernel, dim, *tensors):
    """Launch `kernel` where the rows of all but the last tensor fit in registers, `long_kernel` elsewhere."""
    views = [_rows(t, dim) for t in tensors]
    if views[0].shape[1] == 1 and views[0].stride(0) == 1:
        views = [v.transpose(0, 1) for v in views]
    x, arrays, size = views[0], len(views) - 1, views[0].element_size()
    wide = max(*x.shape, *(s for v in views for s in v.stride())) >= 2**31
    if arrays > 1 and not _is_aligned(views):
        size = max(size, 4)  # a half that is loaded alone takes a register
    words = max(1.0, 1.25 * arrays * size / 4)  # for an element, and for what becomes of it
    long, grid, constants = _plan(*x.shape, min(ROW, int(max(HINTS) / words)), BLOCK // arrays, wide)
    if long:
        hinted = _hinted(long_kernel, 2 * BLOCK)  # a tile and its sums
    else:
        hinted = _hinted(kernel, words * math.prod(constants))
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        ct.launch(stream, grid, hinted, (*views, *constants))


def _forward(x, dim, out=None):
    # Through a tensor of its own where `out` is strided or may overlap `x`
    shared = out is not None and out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    direct = out is not None and out.is_contiguous() and not shared
    y = out if direct else torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel():
        _launch(_softmax_kernel, _softmax_long_kernel, dim, x, y)
    return y if out is None or direct else out.copy_(y)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        y = _forward(x, dim)
        ctx.save_for_backward(y)
        ctx.dim = dim
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        dx = torch.empty_like(y)
        if y.numel():
            _launch(_softmax_backward_kernel, _softmax_long_backward_kernel, ctx.dim, dy, y, dx)
        return dx, None


@register_impl("softmax", backend="cutile")
def softmax(
    x: torch.Tensor,
    dim: int = -1,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Softmax over one dimension, computed in fp32 or wider."""
    if kwargs:
        raise TypeError(f"softmax got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    if not isinstance(dim, int):
        raise TypeError(f"dim is {dim!r}; it must be an int")
    span = x.ndim or 1  # a scalar counts as one element along dimension 0
    if not -span <= dim < span:
        raise ValueError(f"dim is {dim}; it must lie between {-span} and {span - 1}, because x has {x.ndim} dimensions")
    if out is not None and (out.shape != x.shape or out.dtype != x.dtype or out.device != x.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {tuple(x.shape)} of {x.dtype} on {x.device}")
    if x.requires_grad and torch.is_grad_enabled():
        if out is not None:
            raise ValueError("out is given and x requires a gradient; call it without out, or under torch.no_grad()")
        return _Softmax.apply(x, dim % span)
    return _forward(x, dim % span, out)
