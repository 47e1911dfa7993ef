"""cuTile backend of gather."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]

# For a last axis of so many elements, at most: elements of a tile, those of them along this axis, and warps
GATHERED = ((1024, 1024, 1024, 4), (4096, 2048, 1024, 4), (math.inf, 4096, 4096, 8))
ADDED = ((math.inf, 256, 256, 4),)
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
    """Place of each element of this block's tile along every axis, and the same with what Index says along DIM."""
    own, said = (), ()
    for axis in ct.static_iter(range(len(TILE))):
        place = tile_index[axis] * TILE[axis] + ct.arange(TILE[axis], dtype=ct.int32)
        # The last axis of an array is the first of a tile, which neighbours in a warp go along: they load neighbours
        own += (place.reshape(ct.static_eval((TILE[axis],) + (1,) * axis)),)
    t = ct.gather(Index, own, padding_value=-1)
    for axis in ct.static_iter(range(len(TILE))):
        said += (t if axis == DIM else own[axis],)
    return own, said


def _taken(X, Index, Y, DIM, TILE):
    """Y = the elements of X, each from where Index says along DIM."""
    own, said = _places(Index, _tile_index(Y, TILE), DIM, TILE)
    ct.scatter(Y, own, ct.gather(X, said, padding_value=math.nan))


@ct.kernel(**HINTS)
def _gather_kernel(X, Index, Y, DIM: ConstInt, SHAPE: ct.Constant):
    _taken(X, Index, Y, DIM, SHAPE)


@ct.kernel(**HINTS)
def _gather_wide_kernel(
    X: ct.IndexedWithInt64, Index: ct.IndexedWithInt64, Y: ct.IndexedWithInt64, DIM: ConstInt, SHAPE: ct.Constant
):
    """The same for arrays of 2^31 elements or more, which need wider indices."""
    _taken(X, Index, Y, DIM, SHAPE)


def _added(Y, Index, X, DIM, TILE):
    """Add the elements of X to Y, each where Index says along DIM."""
    own, said = _places(Index, _tile_index(X, TILE), DIM, TILE)
    # Sums have no order among them; with one each would wait for all memory
    ct.atomic_add(Y, said, ct.gather(X, own).astype(Y.dtype), memory_order=ct.MemoryOrder.RELAXED)


@ct.kernel(**HINTS)
def _gather_backward_kernel(Y, Index, X, DIM: ConstInt, SHAPE: ct.Constant):
    _added(Y, Index, X, DIM, SHAPE)


@ct.kernel(**HINTS)
def _gather_backward_wide_kernel(
    Y: ct.IndexedWithInt64, Index: ct.IndexedWithInt64, X: ct.IndexedWithInt64, DIM: ConstInt, SHAPE: ct.Constant
):
    """The same for arrays of 2^31 elements or more, which need wider indices."""
    _added(Y, Index, X, DIM, SHAPE)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_KERNELS = (_gather_kernel, _gather_wide_kernel)
_KERNELS_BACKWARD = (
    _gather_backward_kernel,
    _gather_backward_wide_kernel,
)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.cache
def _hinted(kernel, warps):
    """Kernel with so many warps in a block."""
    return kernel.replace_hints(num_worker_warps=warps)


def _is_wide(tensor):
    """Whether 32 bits are too few for the places of its elements."""
    span = 0
    for n, step in zip(tensor.shape, tensor.stride(), strict=True):
        span += n * step
    return span >= 2**31


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


def _launch(kernels, sizes, axis, index, table, other):
    """Move elements between `other` and the places in `table` that `index` says along this axis."""
    wide = any(_is_wide(t) for t in (index, table, other))
    kernel, tile, grid = _plan(kernels[wide], sizes, tuple(other.shape))
    with torch.cuda.device(table.device):
        ct.launch(torch.cuda.current_stream(table.device), grid, kernel, (table, index, other, axis, tile))


def _move(kernels, sizes, dim, index, table, other):
    """The same for an index of the shape of `other`, as few axes as possible."""
    if index.ndim == 0:
        dim, index, table, other = 0, index[None], table[None], other[None]
    _launch(kernels, sizes, *_merged(dim, index, table, other))


def _forward(x, dim, index, out=None):
    # Through a tensor of its own where `out` is strided or may overlap an input
    storages = [t.untyped_storage().data_ptr() for t in (x, index) if out is not None]
    direct = out is not None and out.is_contiguous() and out.untyped_storage().data_ptr() not in storages
    y = out if direct else torch.empty(index.shape, dtype=x.dtype, device=x.device)
    if y.numel():
        _move(_KERNELS, GATHERED, dim, index, x, y)
    return y if out is None or direct else out.copy_(y)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim, index):
        ctx.save_for_backward(index)
        ctx.constants = (x.shape, dim)
        return _forward(x, dim, index)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        (index,) = ctx.saved_tensors
        shape, dim = ctx.constants
        dx = torch.zeros(shape, dtype=torch.promote_types(dy.dtype, torch.float32), device=dy.device)
        if dy.numel() and dx.numel():
            _move(_KERNELS_BACKWARD, ADDED, dim, index, dx, dy)
        return dx.to(dy.dtype), None, None


@register_impl("gather", backend="cutile")
def gather(
    x: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Elements of a tensor, each from where its index says along one dimension."""
    if kwargs:
        raise TypeError(f"gather got unexpected arguments: {', '.join(kwargs)}")
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
    if index.ndim != x.ndim or any(n > x.shape[d] for d, n in enumerate(index.shape) if d != dim):
        most = f"{tuple(x.shape)}, other than in dimension {dim}"
        raise ValueError(f"index has shape {tuple(index.shape)}; it must fit into {most}")
    shape = tuple(index.shape)
    if out is not None and (tuple(out.shape) != shape or out.dtype != x.dtype or out.device != x.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {x.dtype} on {x.device}")
    if torch.is_grad_enabled() and x.requires_grad:
        if out is not None:
            raise ValueError("out is given and x requires a gradient; use torch.no_grad(), or leave out away")
        return _Gather.apply(x, dim, index)
    return _forward(x, dim, index, out)
