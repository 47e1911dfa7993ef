"""cuTile backend of argmax."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]

# How an array is cut, measured on sm_90. Sizes are in bytes, so that a block has as much in flight whatever the dtype.
TILING = {
    # what is reduced: (bytes of a tile, of these along its last axis, bulk copies, blocks on a multiprocessor)
    "columns": (8192, 128, True, ct.ByTarget(sm_90=4, default=2)),
    "rows": (4096, 512, False, ct.ByTarget(sm_90=7, default=4)),
    "long rows": (8192, 8192, True, ct.ByTarget(sm_90=4, sm_100=3, default=2)),
}
LONG_ROW = 2**16  # bytes
BLOCKS = 512  # with fewer blocks the reduced axis is split, to keep the whole GPU busy
CHUNKS_PER_SPLIT = 4  # a split that reads less costs more than it saves
MAX_BLOCKS = 2**24 - 1  # along one axis of a grid


def _gather(X, places, b, i, AXIS, tile):
    """The elements of tile (b, i) at `places` along AXIS; outside of X there is the worst value."""
    other = ct.int64(i) * tile[3 - AXIS] + ct.arange(tile[3 - AXIS], dtype=ct.int32)
    batch = (ct.int64(b) * tile[0] + ct.arange(tile[0], dtype=ct.int32)).reshape((tile[0], 1, 1))
    index = (batch, places, other) if AXIS == 1 else (batch, other.reshape((tile[1], 1)), places)
    return ct.gather(X, index, padding_value=-math.inf)


def _reduce_tiles(X, Value, Index, chunks, LAST, AXIS, tile, GROUP, TMA):
    """Reduce X (B, M, N) along AXIS, which is 1 or 2, to one element for each split of that axis.

    Block (i, s) takes tile i of the two other axes and split s, which is `chunks` tiles long.
    """
    TILE_K = tile[AXIS]
    tiles = ct.int32(ct.cdiv(X.shape[3 - AXIS], tile[3 - AXIS]))
    b, i, split = ct.bid(0) // tiles, ct.bid(0) % tiles, ct.bid(1)
    begin = split * chunks
    end = ct.minimum(begin + chunks, ct.int32(ct.cdiv(X.shape[AXIS], TILE_K)))
    lane = ct.arange(TILE_K, dtype=ct.int32).reshape((1, TILE_K, 1) if AXIS == 1 else (1, 1, TILE_K))

    # Group by group, the best value so far and the chunk that it came from: a max is cheaper than choosing twice.
    groups = (tile[0], TILE_K // GROUP, tile[2]) if AXIS == 1 else (tile[0], tile[1], TILE_K // GROUP)
    best = ct.full(groups, -math.inf, X.dtype)
    chunk = ct.full(groups, begin, ct.int32)
    total = ct.zeros(tile, X.dtype)
    for k in range(begin, end):
        if TMA:  # pads with zeros only: they are replaced
            index = (b, k, i) if AXIS == 1 else (b, i, k)
            tx = ct.load(X, index, tile, padding_mode=ct.PaddingMode.ZERO)
            valid = X.shape[AXIS] - ct.int64(k) * TILE_K
            if valid < TILE_K:
                tx = ct.where(lane < valid, tx, -math.inf)
        else:  # checks the bounds with fewer instructions than a load
            tx = _gather(X, ct.int64(k) * TILE_K + lane, b, i, AXIS, tile)
        total = total + tx
        top = ct.max(tx.reshape((*groups, GROUP)), 3) if GROUP > 1 else tx
        better = top > best
        best = ct.where(better, top, best)
        chunk = ct.where(better, k, chunk)

    # Across the groups: the best value, the first group that holds it, and its first place there.
    value = ct.max(best, AXIS, keepdims=True)
    first = (lane if GROUP == 1 else ct.arange(TILE_K // GROUP, dtype=ct.int32) * GROUP) + (chunk - begin) * TILE_K
    place = ct.min(ct.where(best == value, first, 2**31 - 1), AXIS, keepdims=True)
    start = ct.int64(begin) * TILE_K
    if GROUP > 1:
        member = ct.arange(GROUP, dtype=ct.int32)
        same = _gather(X, start + place + member, b, i, AXIS, tile) == value
        place = place + ct.min(ct.where(same, member, GROUP), AXIS, keepdims=True)

    # The hardware's max passes over NaN, the sum does not.
    total = ct.sum(total)
    if total != total:  # or there are infinities of both signs
        nan = ct.full(tile, 2**31 - 1, ct.int32)
        for k in range(begin, end):
            tx = _gather(X, ct.int64(k) * TILE_K + lane, b, i, AXIS, tile)
            nan = ct.minimum(nan, ct.where(tx != tx, (k - begin) * TILE_K + lane, 2**31 - 1))
        nan = ct.min(nan, AXIS, keepdims=True)
        place = ct.where(nan < 2**31 - 1, nan, place)

    place = start + place
    index = (b, split, i) if AXIS == 1 else (b, i, split)
    if not LAST:
        ct.store(Value, index, _gather(X, place, b, i, AXIS, tile), allow_tma=False)
    ct.store(Index, index, place, allow_tma=False)


@ct.kernel
def _argmax_kernel(
    X,
    Value,
    Index,
    chunks: int,
    LAST: ConstBool,
    AXIS: ConstInt,
    TILE_B: ConstInt,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    GROUP: ConstInt,
    TMA: ConstBool,
):
    _reduce_tiles(X, Value, Index, chunks, LAST, AXIS, (TILE_B, TILE_M, TILE_N), GROUP, TMA)


@ct.kernel
def _argmax_wide_kernel(
    X: ct.IndexedWithInt64,
    Value: ct.IndexedWithInt64,
    Index: ct.IndexedWithInt64,
    chunks: int,
    LAST: ConstBool,
    AXIS: ConstInt,
    TILE_B: ConstInt,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    GROUP: ConstInt,
    TMA: ConstBool,
):
    """The same for arrays with a length or stride of 2^31 or more, which need wider indices."""
    _reduce_tiles(X, Value, Index, chunks, LAST, AXIS, (TILE_B, TILE_M, TILE_N), GROUP, TMA)


_KERNELS = {
    False: _argmax_kernel,
    True: _argmax_wide_kernel,
}
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class _Pass:
    """One launch: its view (B, M, N) of the input, what it reduces there, and what it leaves."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    axis: int
    tile: tuple[int, ...]
    grid: tuple[int, ...]
    chunks: int  # tiles along the axis that one block reduces
    group: int  # neighbours along the axis that are compared as one
    left_size: tuple[int, ...]  # what it leaves, dense, as (B, M, N)
    left_shape: tuple[int, ...]  # the same with the dimensions of the input
    left_stride: tuple[int, ...]
    in_order: bool  # what it leaves lies in memory in the order of the dimensions
    last: bool  # nothing is left to reduce
    tiling: str  # key of TILING
    wide: bool  # lengths or strides need 64 bits


def _power_of_two(n, most):
    """Smallest power of two that is at least `n`, or `most` if that is smaller."""
    power = 1
    while power < n and power < most:
        power *= 2
    return power


def _merged(dims, shape, stride):
    """Join neighbours in memory order where one stride walks through both: (length, stride, dimensions) of each."""
    merged = []
    for d in dims:
        if merged and merged[-1][1] == shape[d] * stride[d]:
            length, _, joined = merged.pop()
            merged.append((length * shape[d], stride[d], (*joined, d)))
        else:
            merged.append((shape[d], stride[d], (d,)))
    return merged


def _view(shape, stride, dims):
    """See the innermost run of `dims` as AXIS of (B, M, N): (run, axis, axes); None if that takes more axes."""
    order = sorted((d for d, n in enumerate(shape) if n > 1), key=lambda d: stride[d], reverse=True)
    end = len(order)
    while end and order[end - 1] not in dims:
        end -= 1
    begin = end
    while begin and order[begin - 1] in dims and len(_merged(order[begin - 1 : end], shape, stride)) == 1:
        begin -= 1
    run, inner = order[begin:end], order[end:]
    kept = _merged(order[:begin], shape, stride) + _merged(inner, shape, stride)
    if len(kept) > 2:
        return None
    # Any stride does for an axis of length 1, but bulk copies ask for multiples of 16 bytes.
    k = _merged(run, shape, stride)[0] if run else (1, 1, ())
    m = kept[-1] if kept else (1, ct.cdiv(k[0] * k[1], 16) * 16, ())
    b = kept[0] if len(kept) == 2 else (1, m[1] if m[1] > k[1] else k[1], ())
    return (run, 1, (b, k, m)) if inner else (run, 2, (b, m, k))


def _grid(size, axis, itemsize):
    """Choose (tiling, tile, grid, chunks) for a view whose last axis is the fastest in memory."""
    tiling = "columns" if axis == 1 else "long rows" if size[2] * itemsize >= LONG_ROW else "rows"
    tile_bytes, width, _, _ = TILING[tiling]
    most = tile_bytes // itemsize
    tile_m = _power_of_two(size[1], tile_bytes // width)
    tile_n = _power_of_two(size[2], most // tile_m)
    tile_m = _power_of_two(size[1], most // tile_n)
    tile = [_power_of_two(size[0], most // (tile_m * tile_n)), tile_m, tile_n]
    while (blocks := ct.cdiv(size[0], tile[0]) * ct.cdiv(size[3 - axis], tile[3 - axis])) > MAX_BLOCKS:
        tile[0] *= 2
    chunks = ct.cdiv(ct.cdiv(size[axis], tile[axis]), BLOCKS // blocks or 1)
    chunks = CHUNKS_PER_SPLIT if chunks < CHUNKS_PER_SPLIT else chunks
    return tiling, tuple(tile), (blocks, ct.cdiv(size[axis], tile[axis] * chunks)), chunks


@functools.lru_cache(maxsize=4096)
def _plan(shape, stride, dims, itemsize):
    """Plan the pass that reduces the innermost run of `dims`; None if no view of three axes shows it."""
    view = _view(shape, stride, dims)
    if view is None:
        return None
    run, axis, axes = view
    size, view_stride, dims_of_axes = zip(*axes, strict=True)
    tiling, tile, grid, chunks = _grid(size, axis, itemsize)
    # What a thread loads at once: 16 bytes, where rows begin on such a boundary and, without bulk copies, end on one.
    aligned = axis == 2 and all(n % 16 == 0 for n in view_stride[:2])
    grouped = aligned and (TILING[tiling][2] or size[2] % 16 == 0)
    left_size = (size[0], grid[1], size[2]) if axis == 1 else (size[0], size[1], grid[1])
    left_shape = [1 if d in run else n for d, n in enumerate(shape)]
    if run:
        left_shape[run[-1]] = grid[1]
    remaining = [d for of_axis in dims_of_axes for d in of_axis if left_shape[d] > 1]
    left_stride, dense = [1] * len(shape), 1
    for d in reversed(remaining):
        left_stride[d] = dense
        dense *= left_shape[d]
    return _Pass(
        size=size,
        stride=view_stride,
        axis=axis,
        tile=tile,
        grid=grid,
        chunks=chunks,
        group=16 // itemsize if grouped else 1,
        left_size=left_size,
        left_shape=tuple(left_shape),
        left_stride=tuple(left_stride),
        in_order=remaining == sorted(remaining),
        last=not set(remaining) & set(dims),
        tiling=tiling,
        wide=any(n >= 2**31 for n in size + view_stride),
    )


@functools.cache
def _kernel(tiling, wide):
    """The kernel with its hints, and whether it uses bulk copies."""
    _, _, tma, occupancy = TILING[tiling]
    return _KERNELS[wide].replace_hints(occupancy=occupancy), tma


def _reduce(x, dim, out):
    """Write the places of the best values along `dim` to `out`, which has the rank of `x`."""
    plan = _plan(tuple(x.shape), x.stride(), (dim,), x.element_size())
    if plan is None:
        return _reduce(x.contiguous(), dim, out)
    direct = plan.last and plan.in_order and out.is_contiguous()
    index = out.view(plan.left_size) if direct else out.new_empty(plan.left_size)
    value = index if plan.last else x.new_empty(plan.left_size)
    view = x.as_strided(plan.size, plan.stride)
    kernel, tma = _kernel(plan.tiling, plan.wide)
    arguments = (view, value, index, plan.chunks, plan.last, plan.axis, *plan.tile, plan.group, tma)
    with torch.cuda.device(x.device):
        ct.launch(torch.cuda.current_stream(x.device), plan.grid, kernel, arguments)
    if not direct:
        index = index.as_strided(plan.left_shape, plan.left_stride)
        if not plan.last:  # the best of the splits
            winner = torch.empty_like(out)
            _reduce(value.as_strided(plan.left_shape, plan.left_stride), dim, winner)
            index = index.gather(dim, winner)
        out.copy_(index)


def _checked_dim(x, dim):
    """Dimension to reduce, counted from the front."""
    if not isinstance(dim, int):
        raise TypeError(f"dim is {dim!r}; it must be an int or None")
    span = x.ndim or 1  # a scalar counts as one element along dimension 0
    if not -span <= dim < span:
        raise ValueError(f"dim is {dim}; it must lie between {-span} and {span - 1}, because x has {x.ndim} dimensions")
    return dim % span


@register_impl("argmax", backend="cutile")
def argmax(
    x: torch.Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Index of the first largest value along one dimension or of the flattened tensor; NaN is the largest."""
    if kwargs:
        raise TypeError(f"argmax got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    dims = tuple(range(x.ndim)) if dim is None else (_checked_dim(x, dim),)
    if any(n == 0 for d, n in enumerate(x.shape) if d in dims):
        raise ValueError(f"x has shape {tuple(x.shape)} and dim is {dim}; the reduced dimensions must not be empty")
    kept = tuple(1 if d in dims else n for d, n in enumerate(x.shape))
    shape = kept if keepdim else tuple(n for d, n in enumerate(x.shape) if d not in dims)
    if out is None:
        out = torch.empty(shape, dtype=torch.int64, device=x.device)
    elif tuple(out.shape) != shape or out.dtype != torch.int64 or out.device != x.device:
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {torch.int64} on {x.device}")
    if x.numel() == 0:
        return out
    shared = out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    result = torch.empty_like(out) if shared else out
    if dim is None:
        _reduce(x.reshape(-1), 0, result.view(1))
    else:
        _reduce(x, dims[0], result.view(kept))
    return out.copy_(result) if shared else out
