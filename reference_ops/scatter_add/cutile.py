"""cuTile backend of scatter_add."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]

TILE = 512  # elements of a tile; with more of them in a thread atomics are slower
ROW = 512  # of these along the last axis
MAX_BLOCKS = 2**24 - 1  # along one axis of a grid
HINTS = {"num_worker_warps": 4, "occupancy": 5}  # from what the compiler reports


def _tile_index(Y, TILE):
    """Index of this block's tile of Y."""
    block, index = ct.bid(0), ()
    for axis in ct.static_iter(range(Y.ndim - 1, -1, -1)):
        blocks = ct.cdiv(Y.shape[axis], TILE[axis])
        index = (block % blocks, *index)
        block = block // blocks
    return index


def _places(Index, tile_index, DIM, TILE):
    """Place of each element of this block's tile along every axis; along DIM it is what Index says."""
    places = ()
    for axis in ct.static_iter(range(Index.ndim)):
        place = tile_index[axis] * TILE[axis] + ct.arange(TILE[axis], dtype=ct.int32)
        place = place.reshape(ct.static_eval((1,) * axis + (TILE[axis],) + (1,) * (len(TILE) - axis - 1)))
        if axis == DIM:
            inside = place < Index.shape[axis]  # what else is padded is outside already
            t = ct.load(Index, tile_index, TILE, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
            place = ct.where(inside, t, -1)
        places += (place,)
    return places


@ct.kernel(**HINTS)
def _scatter_add_kernel(
    Y: ct.IndexedWithInt64, Index: ct.IndexedWithInt64, X: ct.IndexedWithInt64, DIM: ConstInt, SHAPE: ct.Constant
):
    """Add the elements of X to Y, each where Index says along DIM."""
    index = _tile_index(X, SHAPE)
    tx = ct.load(X, index, SHAPE, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    ct.atomic_add(Y, _places(Index, index, DIM, SHAPE), tx.astype(Y.dtype))


@ct.kernel(**HINTS)
def _scatter_add_backward_kernel(
    X: ct.IndexedWithInt64, Index: ct.IndexedWithInt64, Y: ct.IndexedWithInt64, DIM: ConstInt, SHAPE: ct.Constant
):
    """Y = the elements of X, each from where Index says along DIM."""
    index = _tile_index(Y, SHAPE)
    ty = ct.gather(X, _places(Index, index, DIM, SHAPE))
    ct.store(Y, index, ty, allow_tma=False)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.lru_cache(maxsize=4096)
def _plan(shape):
    """Tile of indices of this shape, and number of blocks."""
    tile, room = [], TILE
    for n in reversed(shape):
        tile.insert(0, min(_power_of_two(n), room if tile else ROW))
        room //= tile[0]
    while (blocks := math.prod(ct.cdiv(n, t) for n, t in zip(shape, tile, strict=True))) > MAX_BLOCKS:
        tile[0] *= 2
    return tuple(tile), (blocks,)


def _merged(dim, index, table, other):
    """Views with as few axes as possible, and which one is `dim`: neighbours are one where no array has gaps there."""
    axes, along = [], None  # (length, stride of each)
    for d, n in enumerate(index.shape):
        steps = [t.stride(d) for t in (index, table, other)]
        if d == dim:
            along = len(axes)
            axes.append((n, *steps))
        elif axes and along != len(axes) - 1 and axes[-1][1:] == tuple(n * step for step in steps):
            axes.append((axes.pop()[0] * n, *steps))
        elif n > 1:
            axes.append((n, *steps))
    shape, *strides = zip(*axes, strict=True)
    shapes = (shape, (*shape[:along], table.shape[dim], *shape[along + 1 :]), shape)
    views = zip((index, table, other), shapes, strides, strict=True)
    return along, *(t.as_strided(size, steps) for t, size, steps in views)


def _launch(kernel, dim, index, table, other):
    """Move elements between `other`, of the shape of `index`, and the places in `table` that it says."""
    if index.ndim == 0:
        dim, index, table, other = 0, index[None], table[None], other[None]
    axis, index, table, other = _merged(dim, index, table, other)
    tile, grid = _plan(tuple(index.shape))
    with torch.cuda.device(table.device):
        ct.launch(torch.cuda.current_stream(table.device), grid, kernel, (table, index, other, axis, tile))


def _forward(x, dim, index, src, out=None):
    # Through a tensor of its own where `out` is narrow, strided or may overlap an input
    wide = torch.float32 if x.element_size() == 2 else x.dtype
    storages = [t.untyped_storage().data_ptr() for t in (x, index, src) if out is not None]
    direct = out is not None and out.is_contiguous() and out.untyped_storage().data_ptr() not in storages
    direct = direct and out.dtype == wide
    y = out if direct else torch.empty(x.shape, dtype=wide, device=x.device)
    y.copy_(x)
    if index.numel() and x.numel():
        part = src[tuple(slice(n) for n in index.shape)]
        _launch(_scatter_add_kernel, dim, index, y, part)
    if out is None:
        return y.to(x.dtype)
    return y if direct else out.copy_(y)


class _ScatterAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim, index, src):
        ctx.save_for_backward(index)
        ctx.dim = dim
        return _forward(x, dim, index, src)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        (index,) = ctx.saved_tensors
        dsrc = torch.empty(index.shape, dtype=dy.dtype, device=dy.device)
        if dsrc.numel():
            _launch(_scatter_add_backward_kernel, ctx.dim, index, dy, dsrc)
        return dy, None, None, dsrc


@register_impl("scatter_add", backend="cutile")
def scatter_add(
    x: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    src: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """A copy of a tensor with elements of another one added, each where its index says along one dimension."""
    if kwargs:
        raise TypeError(f"scatter_add got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    if not isinstance(dim, int):
        raise TypeError(f"dim is {dim!r}; it must be an int")
    if not -max(x.ndim, 1) <= dim < max(x.ndim, 1):
        raise ValueError(f"dim is {dim}; x has {x.ndim} dimensions")
    dim %= max(x.ndim, 1)
    if not isinstance(index, torch.Tensor) or index.dtype not in (torch.int32, torch.int64):
        found = getattr(index, "dtype", type(index).__name__)
        raise TypeError(f"index is {found}; it must be a tensor of int32 or int64")
    if index.device != x.device:
        raise ValueError(f"index is on {index.device}; it must be on {x.device}, like x")
    if not isinstance(src, torch.Tensor) or src.dtype != x.dtype:
        found = getattr(src, "dtype", type(src).__name__)
        raise TypeError(f"src is {found}; it must be a tensor of {x.dtype}, like x")
    if src.device != x.device or src.ndim != x.ndim:
        found = f"{tuple(src.shape)} on {src.device}"
        raise ValueError(f"src is {found}; it must have {x.ndim} dimensions, on {x.device}, like x")
    if index.ndim == 1 < src.ndim and index.shape[0] == src.shape[dim]:  # a place for each whole slice
        index = index.reshape(-1, *(1,) * (src.ndim - dim - 1)).expand(src.shape)
    room = tuple(n if d == dim else min(n, x.shape[d]) for d, n in enumerate(src.shape))
    if index.ndim != x.ndim or any(n > most for n, most in zip(index.shape, room, strict=True)):
        raise ValueError(f"index has shape {tuple(index.shape)}; it must fit into {room}")
    shape = tuple(x.shape)
    if out is not None and (tuple(out.shape) != shape or out.dtype != x.dtype or out.device != x.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {x.dtype} on {x.device}")
    if torch.is_grad_enabled() and (x.requires_grad or src.requires_grad):
        if out is not None:
            raise ValueError("out is given and an input requires a gradient; use torch.no_grad(), or leave out away")
        if index.shape != src.shape:
            raise ValueError(f"src has shape {tuple(src.shape)}, index {tuple(index.shape)}; a gradient needs the same")
        return _ScatterAdd.apply(x, dim, index, src)
    return _forward(x, dim, index, src, out)
