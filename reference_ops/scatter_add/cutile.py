"""cuTile backend of scatter_add."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]

# For a last axis of so many elements, at most: elements of a tile, those of them along this axis, and warps
GATHERED = ((1024, 1024, 1024, 4), (4096, 2048, 1024, 4), (math.inf, 4096, 4096, 8))
ADDED = ((512, 512, 512, 4), (math.inf, 1024, 1024, 4))
SLICES = ((math.inf, 2048, 2048, 4),)  # where an index is that of a whole slice
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
    for axis in ct.static_iter(range(len(TILE))):
        place = tile_index[axis] * TILE[axis] + ct.arange(TILE[axis], dtype=ct.int32)
        place = place.reshape(ct.static_eval((1,) * axis + (TILE[axis],) + (1,) * (len(TILE) - axis - 1)))
        if axis == DIM:
            if Index.ndim < len(TILE):  # one for each whole slice
                inside = place < Index.shape[0]
                i, n = tile_index[axis], TILE[axis]
                t = ct.load(Index, (i,), (n,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False).reshape(place.shape)
            else:
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
    places = _places(Index, index, DIM, SHAPE)
    # Sums have no order among them; with one each would wait for all memory
    ct.atomic_add(Y, places, tx.astype(Y.dtype), memory_order=ct.MemoryOrder.RELAXED)


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


@functools.cache
def _hinted(kernel, warps):
    """Kernel with so many warps in a block."""
    return kernel.replace_hints(num_worker_warps=warps)


@functools.lru_cache(maxsize=4096)
def _plan(kernel, sizes, shape):
    """Choose (kernel, tile, number of blocks) for a result or indices of this shape, from a table of sizes."""
    _, room, most, warps = next(size for size in sizes if shape[-1] <= size[0])
    tile = []
    for n in reversed(shape):
        tile.insert(0, min(_power_of_two(n), room if tile else most))
        room //= tile[0]
    while (blocks := math.prod(ct.cdiv(n, t) for n, t in zip(shape, tile, strict=True))) > MAX_BLOCKS:
        tile[0] *= 2
    return _hinted(kernel, warps), tuple(tile), (blocks,)


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


def _launch(kernel, sizes, dim, index, table, other):
    """Move elements between `other`, of the shape of `index`, and the places in `table` that it says."""
    if index.ndim == 0:
        dim, index, table, other = 0, index[None], table[None], other[None]
    axis, index, table, other = _merged(dim, index, table, other)
    kernel, tile, grid = _plan(kernel, sizes, tuple(index.shape))
    with torch.cuda.device(table.device):
        ct.launch(torch.cuda.current_stream(table.device), grid, kernel, (table, index, other, axis, tile))


def _expanded(index, shape, dim):
    """`index` in each place of this shape, where it is one for each whole slice along `dim`."""
    return index.reshape(-1, *(1,) * (len(shape) - dim - 1)).expand(shape) if index.ndim == 1 < len(shape) else index


def _take(dy, dim, index, dsrc):
    """Write to `dsrc` the slices of `dy` along `dim` that `index` says."""
    a, m, b = math.prod(dsrc.shape[:dim]), index.numel(), math.prod(dsrc.shape[dim + 1 :])
    part = dy[tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(dsrc.shape))]
    kernel, tile, grid = _plan(_scatter_add_backward_kernel, SLICES, (a, m, b))
    with torch.cuda.device(dy.device):
        arguments = (part.reshape(a, dy.shape[dim], b), index, dsrc.reshape(a, m, b), 1, tile)
        ct.launch(torch.cuda.current_stream(dy.device), grid, kernel, arguments)


def _forward(x, dim, index, src, out=None):
    index = _expanded(index, src.shape, dim)
    # Through a tensor of its own where `out` is narrow, strided or may overlap an input
    wide = torch.float32 if x.element_size() == 2 else x.dtype
    storages = [t.untyped_storage().data_ptr() for t in (x, index, src) if out is not None]
    direct = out is not None and out.is_contiguous() and out.untyped_storage().data_ptr() not in storages
    direct = direct and out.dtype == wide
    y = out if direct else torch.empty(x.shape, dtype=wide, device=x.device)
    y.copy_(x)
    if index.numel() and x.numel():
        part = src[tuple(slice(n) for n in index.shape)]
        _launch(_scatter_add_kernel, ADDED, dim, index, y, part)
    if out is None:
        return y.to(x.dtype)
    return y if direct else out.copy_(y)


class _ScatterAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim, index, src):
        ctx.save_for_backward(index)
        ctx.constants = (src.shape, dim)
        return _forward(x, dim, index, src)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        (index,) = ctx.saved_tensors
        shape, dim = ctx.constants
        dsrc = torch.empty(shape, dtype=dy.dtype, device=dy.device)
        if dsrc.numel() and index.ndim == 1 < len(shape):
            _take(dy, dim, index, dsrc)
        elif dsrc.numel():
            _launch(_scatter_add_backward_kernel, GATHERED, dim, index, dy, dsrc)
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
    room = tuple(n if d == dim else min(n, x.shape[d]) for d, n in enumerate(src.shape))
    slices = index.ndim == 1 < src.ndim and index.shape[0] == src.shape[dim]  # a place for each whole slice
    places = src.shape if slices else index.shape
    if len(places) != x.ndim or any(n > most for n, most in zip(places, room, strict=True)):
        raise ValueError(f"index has shape {tuple(index.shape)}; it must fit into {room}")
    shape = tuple(x.shape)
    if out is not None and (tuple(out.shape) != shape or out.dtype != x.dtype or out.device != x.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {x.dtype} on {x.device}")
    if torch.is_grad_enabled() and (x.requires_grad or src.requires_grad):
        if out is not None:
            raise ValueError("out is given and an input requires a gradient; use torch.no_grad(), or leave out away")
        if places != src.shape:
            raise ValueError(f"src has shape {tuple(src.shape)}, index {tuple(index.shape)}; a gradient needs the same")
        return _ScatterAdd.apply(x, dim, index, src)
    return _forward(x, dim, index, src, out)
