"""cuTile backend of transpose."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

TILE = 4096  # elements of a tile
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
    """Copy X to Y, which have one shape and lie in memory in different orders."""
    index = _tile_index(Y, TILE)
    ct.store(Y, index, ct.load(X, index, TILE, padding_mode=ct.PaddingMode.ZERO))


@ct.kernel
def _transpose_kernel(X, Y, SHAPE: ct.Constant):
    _copy(X, Y, SHAPE)


@ct.kernel
def _transpose_wide_kernel(X: ct.IndexedWithInt64, Y: ct.IndexedWithInt64, SHAPE: ct.Constant):
    """The same for arrays of 2^31 elements or more, which need wider indices."""
    _copy(X, Y, SHAPE)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_KERNELS = {
    False: _transpose_kernel.replace_hints(**HINTS),
    True: _transpose_wide_kernel.replace_hints(**HINTS),
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


@register_impl("transpose", backend="cutile")
def transpose(
    x: torch.Tensor,
    dim0: int = -2,
    dim1: int = -1,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """A contiguous copy with two dimensions exchanged."""
    if kwargs:
        raise TypeError(f"transpose got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    for name, dim in (("dim0", dim0), ("dim1", dim1)):
        if not isinstance(dim, int):
            raise TypeError(f"{name} is {dim!r}; it must be an int")
        if not -(x.ndim or 1) <= dim < (x.ndim or 1):
            raise ValueError(f"{name} is {dim}; x has {x.ndim} dimensions")
    shape, steps = list(x.shape), list(x.stride())
    for values in (shape, steps) if x.ndim else ():
        values[dim0], values[dim1] = values[dim1], values[dim0]
    shape, steps = tuple(shape), tuple(steps)
    if out is None:
        out = torch.empty(shape, dtype=x.dtype, device=x.device)
    elif tuple(out.shape) != shape or out.dtype != x.dtype or out.device != x.device:
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {x.dtype} on {x.device}")
    if out.numel() == 0:
        return out
    # Through a tensor of its own where `out` is strided or may overlap `x`
    shared = out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    result = torch.empty(shape, dtype=x.dtype, device=x.device) if shared or not out.is_contiguous() else out
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        _launch(stream, x, shape, steps, result)
    return out if result is out else out.copy_(result)
