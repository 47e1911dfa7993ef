"""cuTile backend of cat."""

import functools
import itertools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

TILE = 4096  # elements of a tile
JOINED = 2048  # the same where one launch copies all tensors
MOST = 8  # tensors of such a launch
SIDE = 64  # of these along the axis that is the fastest in the result, where another one is in the input
MAX_BLOCKS = 2**24 - 1  # along one axis of a grid
HINTS = {"num_worker_warps": 4, "occupancy": ct.ByTarget(sm_90=6, default=4)}


def _tile_index(Y, TILE):
    """Index of this block's tile of Y."""
    block, index = ct.bid(0), ()
    for axis in ct.static_iter(range(Y.ndim - 1, -1, -1)):
        blocks = ct.cdiv(Y.shape[axis], TILE[axis])
        index = (block % blocks, *index)
        block = block // blocks
    return index


def _copy(X, Y, TILE):
    """Copy X to Y, which have one shape."""
    index = _tile_index(Y, TILE)
    # Not through TMA, which could write beyond the end of Y: there the next tensor begins
    tx = ct.load(X, index, TILE, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    ct.store(Y, index, tx, allow_tma=False)


@ct.kernel
def _cat_kernel(X, Y, SHAPE: ct.Constant):
    _copy(X, Y, SHAPE)


@ct.kernel
def _cat_wide_kernel(X: ct.IndexedWithInt64, Y: ct.IndexedWithInt64, SHAPE: ct.Constant):
    """The same for arrays of 2^31 elements or more, which need wider indices."""
    _copy(X, Y, SHAPE)


@ct.kernel(**HINTS)
def _cat_rows_kernel(Xs: tuple, Ys: tuple, first: tuple, TILE_M: ct.Constant[int], WIDTHS: ct.Constant):
    """Copy each of Xs (M, N) to its own of Ys; `first` says at which tile of a row it begins.

    What lies in a row of the result is written at about the same time, so that memory takes whole lines.
    """
    m, n = ct.bid(0) // first[-1], ct.bid(0) % first[-1]
    for i in ct.static_iter(range(len(WIDTHS))):
        if n >= first[i] and n < first[i + 1]:
            index = (m, n - first[i])
            tx = ct.load(Xs[i], index, (TILE_M, WIDTHS[i]), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
            ct.store(Ys[i], index, tx, allow_tma=False)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_KERNELS = {
    False: _cat_kernel.replace_hints(**HINTS),
    True: _cat_wide_kernel.replace_hints(**HINTS),
}


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


def _merged(shape, steps, strides):
    """The same places of both arrays with as few axes as possible: (shape, strides of the first, of the second)."""
    axes = []
    for n, step, stride in zip(shape, steps, strides, strict=True):
        if axes and axes[-1][1:] == (n * step, n * stride):
            axes.append((axes.pop()[0] * n, step, stride))
        elif n > 1:
            axes.append((n, step, stride))
    return tuple(zip(*axes, strict=True)) if axes else ((1,), (1,), (1,))


@functools.lru_cache(maxsize=4096)
def _plan(shape, steps, strides):
    """Choose (shape, strides of an input and a result of this shape, number of blocks, kernel, tile)."""
    shape, steps, strides = _merged(shape, steps, strides)
    last, fast = len(shape) - 1, steps.index(min(steps))
    tile = [1] * len(shape)
    tile[last] = min(_power_of_two(shape[last]), TILE if last == fast else SIDE)
    for axis in (fast, *range(last, -1, -1)):
        if axis != last:
            tile[axis] = min(_power_of_two(shape[axis]), TILE // math.prod(tile) * tile[axis])
    while (blocks := math.prod(ct.cdiv(n, t) for n, t in zip(shape, tile, strict=True))) > MAX_BLOCKS:
        tile[0] *= 2
    # Whether 32 bits are too few for the places of elements
    wide = any(math.fsum(n * s for n, s in zip(shape, places, strict=True)) >= 2**31 for places in (steps, strides))
    return shape, steps, strides, (blocks,), _KERNELS[wide], tuple(tile)


def _launch(stream, x, shape, steps, y, begin=0):
    """Copy `x`, seen with this shape and these strides, to as many elements of `y` along its axes, from `begin` on."""
    shape, steps, strides, grid, kernel, tile = _plan(shape, steps, y.stride())
    target = y.as_strided(shape, strides, y.storage_offset() + begin)
    ct.launch(stream, grid, kernel, (x.as_strided(shape, steps), target, tile))


@functools.lru_cache(maxsize=4096)
def _tiled(m, lengths):
    """Choose (number of blocks, first tile of each in a row, rows and lengths of tiles) for rows of these lengths."""
    longest = min(_power_of_two(max(lengths)), JOINED)
    tile_m = min(_power_of_two(m), JOINED // longest)
    widths = tuple(min(_power_of_two(n), longest) for n in lengths)
    counts = (ct.cdiv(n, width) for n, width in zip(lengths, widths, strict=True))
    first = tuple(itertools.accumulate(counts, initial=0))
    return (ct.cdiv(m, tile_m) * first[-1],), first, tile_m, widths


def _join(stream, tensors, dim, y):
    """Copy contiguous tensors to `y` by one launch."""
    m = math.prod(y.shape[:dim])
    xs = tuple(x.reshape(m, -1) for x in tensors)
    lengths = tuple(x.shape[1] for x in xs)
    grid, *constants = _tiled(m, lengths)
    ys = y.reshape(m, -1).split(lengths, 1)
    ct.launch(stream, grid, _cat_rows_kernel, (xs, ys, *constants))


@register_impl("cat", backend="cutile")
def cat(
    tensors: list[torch.Tensor] | tuple[torch.Tensor, ...],
    dim: int = 0,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Several tensors one behind the other along a dimension."""
    if kwargs:
        raise TypeError(f"cat got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(tensors, list | tuple) or not tensors:
        raise TypeError(f"tensors is {tensors!r}; it must be a list or tuple of at least one tensor")
    for i, x in enumerate(tensors):
        if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
            found = getattr(x, "dtype", type(x).__name__)
            raise TypeError(f"tensors[{i}] is {found}; it must be a tensor of float32, float16, bfloat16")
        if not x.is_cuda:
            raise ValueError(f"tensors[{i}] is on {x.device}; it must be on a CUDA device")
        if x.dtype != tensors[0].dtype:
            raise TypeError(f"tensors[{i}] is {x.dtype}; it must be {tensors[0].dtype}, like tensors[0]")
        if x.device != tensors[0].device:
            raise ValueError(f"tensors[{i}] is on {x.device}; it must be on {tensors[0].device}, like tensors[0]")
    joined = [x for x in tensors if x.shape != (0,)] or tensors[:1]
    first = joined[0]
    if not isinstance(dim, int):
        raise TypeError(f"dim is {dim!r}; it must be an int")
    if not -first.ndim <= dim < first.ndim:
        raise ValueError(f"dim is {dim}; the tensors have {first.ndim} dimensions")
    dim %= first.ndim
    length = 0
    for x in joined:
        if x.ndim != first.ndim or any(n != x.shape[d] for d, n in enumerate(first.shape) if d != dim):
            shapes = f"{tuple(first.shape)} and {tuple(x.shape)}"
            raise ValueError(f"tensors have shapes {shapes}; these may differ in dimension {dim} only")
        length += x.shape[dim]
    shape = (*first.shape[:dim], length, *first.shape[dim + 1 :])
    if out is None:
        out = torch.empty(shape, dtype=x.dtype, device=x.device)
    elif tuple(out.shape) != shape or out.dtype != x.dtype or out.device != x.device:
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {x.dtype} on {x.device}")
    if out.numel() == 0:
        return out
    # Through a tensor of its own where `out` is strided or may overlap an input
    shared = any(out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for x in joined)
    result = torch.empty(shape, dtype=x.dtype, device=x.device) if shared or not out.is_contiguous() else out
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        parts = [x for x in joined if x.numel()]
        if len(parts) <= MOST and all(x.is_contiguous() for x in parts) and out.numel() < 2**31:
            _join(stream, parts, dim, result)
        else:
            begin = 0
            for x in parts:
                _launch(stream, x, tuple(x.shape), x.stride(), result, begin)
                begin += x.shape[dim] * result.stride(dim)
    return out if result is out else out.copy_(result)
