"""cuTile backend of pad."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

TILE = 2048  # elements of a tile
ROW = 1024  # of these along the last axis
MAX_BLOCKS = 2**24 - 1  # along one axis of a grid
HINTS = {"num_worker_warps": 4, "occupancy": ct.ByTarget(sm_90=8, default=4)}


def _tile_index(Y, TILE):
    """Index of this block's tile of Y."""
    block, index = ct.bid(0), ()
    for axis in ct.static_iter(range(Y.ndim - 1, -1, -1)):
        blocks = ct.cdiv(Y.shape[axis], TILE[axis])
        index = (block % blocks, *index)
        block = block // blocks
    return index


def _pad(X, Y, BEFORE, VALUE, TILE):
    """Y[i] = X[i - BEFORE], and VALUE where X has no such element."""
    index = _tile_index(Y, TILE)
    places, sources = (), ()
    for axis in ct.static_iter(range(Y.ndim)):
        place = index[axis] * TILE[axis] + ct.arange(TILE[axis], dtype=ct.int32)
        # The last axis of an array is the first of a tile, which neighbours in a warp go along: they load neighbours
        place = place.reshape(ct.static_eval((TILE[axis],) + (1,) * axis))
        places += (place,)
        sources += (place - BEFORE[axis],)
    ct.scatter(Y, places, ct.gather(X, sources, padding_value=VALUE))


@ct.kernel
def _pad_kernel(X, Y, BEFORE: ct.Constant, VALUE: ct.Constant, SHAPE: ct.Constant):
    _pad(X, Y, BEFORE, VALUE, SHAPE)


@ct.kernel
def _pad_wide_kernel(
    X: ct.IndexedWithInt64, Y: ct.IndexedWithInt64, BEFORE: ct.Constant, VALUE: ct.Constant, SHAPE: ct.Constant
):
    """The same for arrays of 2^31 elements or more, which need wider indices."""
    _pad(X, Y, BEFORE, VALUE, SHAPE)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_KERNELS = {
    False: _pad_kernel.replace_hints(**HINTS),
    True: _pad_wide_kernel.replace_hints(**HINTS),
}


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


def _is_wide(tensor):
    """Whether 32 bits are too few for the places of its elements."""
    span = 0
    for n, step in zip(tensor.shape, tensor.stride(), strict=True):
        span += n * step
    return span >= 2**31


def _merged(x, y, before):
    """View both with as few axes as possible: neighbours are one where the second has no padding."""
    axes = []  # (length in x, in y, stride in x, in y, elements before)
    for n, m, step, stride, begin in zip(x.shape, y.shape, x.stride(), y.stride(), before, strict=True):
        if axes and n == m and begin == 0 and axes[-1][2] == n * step:
            wide_n, wide_m, _, _, wide_begin = axes.pop()
            axes.append((wide_n * n, wide_m * n, step, stride, wide_begin * n))
        else:
            axes.append((n, m, step, stride, begin))
    shape, out_shape, steps, strides, begins = zip(*axes, strict=True)
    return x.as_strided(shape, steps), y.as_strided(out_shape, strides), begins


@functools.lru_cache(maxsize=4096)
def _plan(shape):
    """Tile of a result of this shape, and number of blocks."""
    tile, room = [], TILE
    for n in reversed(shape):
        tile.insert(0, min(_power_of_two(n), room if tile else ROW))
        room //= tile[0]
    while (blocks := math.prod(ct.cdiv(n, t) for n, t in zip(shape, tile, strict=True))) > MAX_BLOCKS:
        tile[0] *= 2
    return tuple(tile), (blocks,)


def _launch(x, y, before, constant):
    """Write `x` to `y`, with elements `constant` around it."""
    x, y, before = _merged(x, y, before)
    tile, grid = _plan(tuple(y.shape))
    kernel = _KERNELS[_is_wide(x) or _is_wide(y)]
    with torch.cuda.device(x.device):
        ct.launch(torch.cuda.current_stream(x.device), grid, kernel, (x, y, before, constant, tile))


@register_impl("pad", backend="cutile")
def pad(
    x: torch.Tensor,
    padding: tuple[int, ...],
    value: float = 0,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """A copy with constant elements before and after each dimension, or without some of its own."""
    if kwargs:
        raise TypeError(f"pad got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    if not isinstance(padding, tuple | list) or not all(isinstance(n, int) for n in padding):
        raise TypeError(f"padding is {padding!r}; it must be a tuple of ints")
    if len(padding) % 2 or len(padding) > 2 * x.ndim:
        raise ValueError(f"padding is {padding}; it must be pairs of ints, one for each of the last dimensions")
    if not isinstance(value, int | float):
        raise TypeError(f"value is {value!r}; it must be a number")
    pairs = [(0, 0)] * (x.ndim - len(padding) // 2) + list(zip(padding[-2::-2], padding[::-2], strict=True))
    shape = tuple(n + before + after for n, (before, after) in zip(x.shape, pairs, strict=True))
    if any(n < 0 for n in shape):
        raise ValueError(f"padding is {padding}; it takes more away than x has, whose shape is {tuple(x.shape)}")
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
    if x.ndim == 0 or x.numel() == 0:
        result.copy_(x) if x.ndim == 0 else result.fill_(value)
    else:
        _launch(x, result, tuple(before for before, _ in pairs), float(value) if x.is_floating_point() else int(value))
    return out if result is out else out.copy_(result)
