"""cuTile backend of group_norm."""

import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstFloat = ct.Constant[float]
ConstBool = ct.Constant[bool]

BLOCK = 4096  # elements of a tile
BLOCKS = 1024  # that sum, at least, where the input is large enough
PARTS = 128  # of one sum, at most
HINTS_SUMS = {"occupancy": ct.ByTarget(sm_90=3, default=2), "num_worker_warps": 8}
HINTS = {"occupancy": 8, "num_worker_warps": 8}


def _load(A, index, tile):
    """Tile of A as fp32; zero outside."""
    return ct.load(A, index, tile, padding_mode=ct.PaddingMode.ZERO, allow_tma=False).astype(ct.float32)


def _inside(A, axis, i, TILE: ConstInt):
    """How many of the elements of tile `i` along an axis of A lie inside of it."""
    return ct.int32(ct.minimum(A.shape[axis] - ct.int64(i) * TILE, TILE))


@ct.kernel(**HINTS_SUMS)
def _group_norm_moments_kernel(
    X: ct.IndexedWithInt64, Count, Mean, Square, chunks: int, TILE_R: ConstInt, TILE_B: ConstInt, TILE_S: ConstInt
):
    """Over a part of each row of X (R, B, S): how many elements, their mean, and the squares around it (R, parts)."""
    rows = ct.int32(ct.cdiv(X.shape[0], TILE_R))
    steps = ct.int32(ct.cdiv(X.shape[2], TILE_S))
    r, part = ct.bid(0) % rows, ct.bid(0) // rows
    begin = part * chunks
    end = ct.minimum(begin + chunks, ct.int32(ct.cdiv(X.shape[1], TILE_B)) * steps)
    flat = (TILE_R, TILE_B * TILE_S)
    row, column = ct.arange(TILE_B, dtype=ct.int32)[:, None], ct.arange(TILE_S, dtype=ct.int32)[None, :]

    # Sums around the mean of the first tile, near enough to the part's that no digits cancel
    b, s = begin // steps, begin % steps
    pivot = ct.sum(_load(X, (r, b, s), (TILE_R, TILE_B, TILE_S)).reshape(flat), 1, keepdims=True)
    pivot = pivot / (_inside(X, 1, b, TILE_B) * _inside(X, 2, s, TILE_S))
    count = 0.0
    total = ct.zeros(flat, ct.float32)
    square = ct.zeros(flat, ct.float32)
    for i in range(begin, end):
        b, s = i // steps, i % steps
        inside_b, inside_s = _inside(X, 1, b, TILE_B), _inside(X, 2, s, TILE_S)
        inside = ((row < inside_b) & (column < inside_s)).reshape((TILE_B * TILE_S,))
        tx = _load(X, (r, b, s), (TILE_R, TILE_B, TILE_S)).reshape(flat)
        tx = ct.where(inside, tx - pivot, 0.0)
        count = count + inside_b * inside_s
        total = total + tx
        square = square + tx * tx
    shift = ct.sum(total, 1, keepdims=True) / count
    square = ct.sum(square, 1, keepdims=True) - count * shift * shift
    ct.store(Count, (r, part), ct.full((TILE_R, 1), count, ct.float32))
    ct.store(Mean, (r, part), pivot + shift)
    ct.store(Square, (r, part), square)


@ct.kernel
def _group_norm_statistics_kernel(Counts, Means, Squares, Mean, Var, TILE: ConstInt):
    """Mean and variance of each row from those of its parts (R, parts)."""
    r = ct.bid(0)
    counts, means = _load(Counts, (r, 0), (1, TILE)), _load(Means, (r, 0), (1, TILE))
    count = ct.sum(counts)
    mean = ct.sum(counts * means) / count
    square = ct.sum(_load(Squares, (r, 0), (1, TILE)) + counts * (means - mean) * (means - mean))
    ct.store(Mean, (r,), mean)
    ct.store(Var, (r,), square / count)


def _tile_of(A, block, GROUP: ConstInt, TILE_N: ConstInt, TILE_C: ConstInt, TILE_S: ConstInt):
    """Index of a tile of A (N, C, S); its channels (1, C, 1); which statistics they have (N, C, 1)."""
    steps = ct.int32(ct.cdiv(A.shape[2], TILE_S))
    blocks = ct.int32(ct.cdiv(A.shape[1], TILE_C))
    s, c, n = block % steps, block // steps % blocks, block // steps // blocks
    channel = (c * TILE_C + ct.arange(TILE_C, dtype=ct.int32))[None, :, None]
    sample = (n * TILE_N + ct.arange(TILE_N, dtype=ct.int32))[:, None, None]
    return (n, c, s), channel, sample * (ct.int32(A.shape[1]) // GROUP) + channel // GROUP


@ct.kernel(**HINTS)
def _group_norm_kernel(
    X: ct.IndexedWithInt64,
    Y: ct.IndexedWithInt64,
    Mean,
    Var,
    W,
    B,
    EPS: ConstFloat,
    HAS_W: ConstBool,
    HAS_B: ConstBool,
    GROUP: ConstInt,
    TILE_N: ConstInt,
    TILE_C: ConstInt,
    TILE_S: ConstInt,
):
    """Normalize a tile of X (N, C, S)."""
    # Backwards: what the sums read last is still in the cache
    block = ct.num_blocks(0) - 1 - ct.bid(0)
    index, channel, row = _tile_of(X, block, GROUP, TILE_N, TILE_C, TILE_S)
    scale = ct.rsqrt(ct.gather(Var, row) + EPS)
    if HAS_W:
        scale = scale * ct.gather(W, channel).astype(ct.float32)
    ty = (_load(X, index, (TILE_N, TILE_C, TILE_S)) - ct.gather(Mean, row)) * scale
    if HAS_B:
        ty = ty + ct.gather(B, channel).astype(ct.float32)
    ct.store(Y, index, ty.astype(Y.dtype), allow_tma=False)


@ct.kernel(**HINTS_SUMS)
def _group_norm_sums_kernel(
    dY: ct.IndexedWithInt64,
    X: ct.IndexedWithInt64,
    Mean,
    Var,
    dW,
    dB,
    chunks: int,
    EPS: ConstFloat,
    GROUP: ConstInt,
    TILE_N: ConstInt,
    TILE_C: ConstInt,
    TILE_S: ConstInt,
):
    """Sums of dY times the normalized X, and of dY, over parts of the positions: (N, C, parts)."""
    tile = (TILE_N, TILE_C, TILE_S)
    parts = dW.shape[2]
    part = ct.bid(0) % parts
    steps = ct.int32(ct.cdiv(X.shape[2], TILE_S))
    (n, c, _), _, row = _tile_of(X, ct.bid(0) // parts * steps, GROUP, TILE_N, TILE_C, TILE_S)
    mean, rstd = ct.gather(Mean, row), ct.rsqrt(ct.gather(Var, row) + EPS)
    tdw = ct.zeros(tile, ct.float32)
    tdb = ct.zeros(tile, ct.float32)
    for s in range(part * chunks, ct.minimum((part + 1) * chunks, steps)):
        tdy = _load(dY, (n, c, s), tile)
        tdw = tdw + tdy * (_load(X, (n, c, s), tile) - mean)
        tdb = tdb + tdy
    ct.store(dW, (n, c, part), ct.sum(tdw, 2, keepdims=True) * rstd)
    ct.store(dB, (n, c, part), ct.sum(tdb, 2, keepdims=True))


@ct.kernel(**HINTS)
def _group_norm_backward_kernel(
    dY: ct.IndexedWithInt64,
    X: ct.IndexedWithInt64,
    dX: ct.IndexedWithInt64,
    Mean,
    Var,
    W,
    Slope,
    Offset,
    EPS: ConstFloat,
    HAS_W: ConstBool,
    GROUP: ConstInt,
    TILE_N: ConstInt,
    TILE_C: ConstInt,
    TILE_S: ConstInt,
):
    """Gradient of a tile of X (N, C, S), less what a change of the statistics takes away."""
    tile = (TILE_N, TILE_C, TILE_S)
    block = ct.num_blocks(0) - 1 - ct.bid(0)
    index, channel, row = _tile_of(X, block, GROUP, TILE_N, TILE_C, TILE_S)
    rstd = ct.rsqrt(ct.gather(Var, row) + EPS)
    tdx = _load(dY, index, tile)
    if HAS_W:
        tdx = tdx * ct.gather(W, channel).astype(ct.float32)
    tx = (_load(X, index, tile) - ct.gather(Mean, row)) * rstd
    tdx = (tdx - ct.gather(Offset, row) - tx * ct.gather(Slope, row)) * rstd
    ct.store(dX, index, tdx.astype(dX.dtype), allow_tma=False)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _positions(t):
    """View (N, C, S) of a tensor (N, C, ...)."""
    return t.reshape(*t.shape[:2], math.prod(t.shape[2:]))


def _tile(t):
    """Powers of two for the three axes of `t`: as much of memory in one piece as a block takes."""
    tile = [1, 1, 1]
    for d in sorted(range(3), key=lambda d: (t.stride(d), -d)):
        tile[d] = min(1 << (t.shape[d] - 1).bit_length(), BLOCK // math.prod(tile))
    return tile


def _blocks(t, tile):
    return math.prod(ct.cdiv(n, size) for n, size in zip(t.shape, tile, strict=True))


def _launch(blocks, kernel, *arguments):
    device = arguments[0].device
    with torch.cuda.device(device):
        ct.launch(torch.cuda.current_stream(device), (blocks,), kernel, arguments)


def _statistics(rows):
    """Mean and biased variance of rows (R, B, S)."""
    r, b, s = _tile(rows)
    blocks, tiles = ct.cdiv(rows.shape[0], r), ct.cdiv(rows.shape[1], b) * ct.cdiv(rows.shape[2], s)
    chunks = ct.cdiv(tiles, min(PARTS, max(1, BLOCKS // blocks)))
    parts = ct.cdiv(tiles, chunks)
    sums = torch.empty((3, rows.shape[0], parts), dtype=torch.float32, device=rows.device).unbind()
    mean, var = torch.empty((2, rows.shape[0]), dtype=torch.float32, device=rows.device)
    _launch(blocks * parts, _group_norm_moments_kernel, rows, *sums, chunks, r, b, s)
    arguments = (*sums, mean, var, 1 << (parts - 1).bit_length())
    _launch(rows.shape[0], _group_norm_statistics_kernel, *arguments)
    return mean, var


def _normalize(x, mean, var, weight, bias, eps, group, out=None):
    # Through a tensor of its own where `out` is strided or may overlap an input
    tensors = [t for t in (x, mean, var, weight, bias) if t is not None]
    shared = out is not None and out.untyped_storage().data_ptr() in [t.untyped_storage().data_ptr() for t in tensors]
    direct = out is not None and out.is_contiguous() and not shared
    y = out if direct else torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel():
        a, b = _positions(x), _positions(y)
        w, v = (mean if t is None else t for t in (weight, bias))  # the mean stands in for one that is not there
        tile = _tile(a)
        arguments = (a, b, mean, var, w, v, float(eps), weight is not None, bias is not None, group, *tile)
        _launch(_blocks(a, tile), _group_norm_kernel, *arguments)
    return y if out is None or direct else out.copy_(y)


def _channel_sums(dy, x, mean, var, eps, group):
    """Sums over the positions of dy times the normalized x, and of dy: (N, C)."""
    tile = _tile(x)
    blocks, tiles = _blocks(x[:, :, :1], tile), ct.cdiv(x.shape[2], tile[2])
    chunks = ct.cdiv(tiles, min(PARTS, max(1, BLOCKS // blocks)))
    parts = ct.cdiv(tiles, chunks)
    dw, db = torch.empty((2, *x.shape[:2], parts), dtype=torch.float32, device=x.device)
    arguments = (dy, x, mean, var, dw, db, chunks, eps, group, *tile)
    _launch(blocks * parts, _group_norm_sums_kernel, *arguments)
    return dw.sum(2), db.sum(2)


class _GroupNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, mean, var, eps, group):
        ctx.save_for_backward(x, weight, bias, mean, var)
        ctx.constants = (float(eps), group)
        return _normalize(x, mean, var, weight, bias, eps, group)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        x, weight, bias, mean, var = ctx.saved_tensors
        eps, group = ctx.constants
        dx = torch.empty_like(x, memory_format=torch.contiguous_format)
        if not x.numel():
            sums = torch.zeros((2, *x.shape[:2]), device=x.device)
        else:
            a, tdy, tdx = (_positions(t) for t in (x, dy, dx))
            sums = _channel_sums(tdy, a, mean, var, eps, group)
            weighted = [s if weight is None else s * weight for s in sums]
            slope, offset = (s.reshape(-1, group).sum(1) / (group * a.shape[2]) for s in weighted)
            w, tile = mean if weight is None else weight, _tile(a)
            arguments = (tdy, a, tdx, mean, var, w, slope, offset, eps, weight is not None, group, *tile)
            _launch(_blocks(a, tile), _group_norm_backward_kernel, *arguments)
        dw, db = (None if t is None else s.sum(0).to(t.dtype) for t, s in zip((weight, bias), sums, strict=True))
        return dx, dw, db, None, None, None, None


def _check_vector(name, value, x):
    """Refuse what has not one element for each channel of `x`."""
    if not isinstance(value, torch.Tensor) or value.dtype not in _DTYPES:
        found = getattr(value, "dtype", type(value).__name__)
        raise TypeError(f"{name} is {found}; it must be a tensor of float32, float16, bfloat16, or None")
    if value.shape != x.shape[1:2] or value.device != x.device:
        found = f"{tuple(value.shape)} on {value.device}"
        raise ValueError(f"{name} is {found}; it must be {tuple(x.shape[1:2])} on {x.device}, one for each channel")


@register_impl("group_norm", backend="cutile")
def group_norm(
    x: torch.Tensor,
    num_groups: int,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Group normalization of (N, C, ...), over the channels of a group and all positions of a sample."""
    if kwargs:
        raise TypeError(f"group_norm got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    if x.ndim < 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have at least two, samples and channels")
    if not isinstance(num_groups, int):
        raise TypeError(f"num_groups is {num_groups!r}; it must be an int")
    if num_groups < 1 or x.shape[1] % num_groups:
        raise ValueError(f"num_groups is {num_groups}; it must divide the {x.shape[1]} channels of x")
    if weight is not None:
        _check_vector("weight", weight, x)
    if bias is not None:
        _check_vector("bias", bias, x)
    if not isinstance(eps, int | float):
        raise TypeError(f"eps is {eps!r}; it must be a number")
    if out is not None and (out.shape != x.shape or out.dtype != x.dtype or out.device != x.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {tuple(x.shape)} of {x.dtype} on {x.device}")
    differentiable = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias))
    if differentiable and out is not None:
        raise ValueError("out is given and an input requires a gradient; use torch.no_grad(), or leave out away")
    group = x.shape[1] // num_groups
    rows = _positions(x)
    mean, var = _statistics(rows.reshape(-1, group, rows.shape[2])) if x.numel() else (x, x)
    if differentiable:
        return _GroupNorm.apply(x, weight, bias, mean, var, eps, group)
    return _normalize(x, mean, var, weight, bias, eps, group, out)
