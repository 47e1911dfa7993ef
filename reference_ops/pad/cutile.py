"""cuTile backend of pad."""

import functools
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

TILE = 2048  # elements of a tile
PIECE = 2**30  # of a launch, at most; places along axes of as many fit into 32 bits
HINTS = {"num_worker_warps": 4, "occupancy": ct.ByTarget(sm_90=7, default=4)}


def _pad(X, Y, begins, axes, VALUE, TILE, INT, UINT):
    """Y, which is the result from the places `begins` on, = X, and VALUE where X has no such element.

    Y is flat, so that stores are whole vectors whatever the length of a row.
    """
    first = ct.astype(ct.bid(0) * TILE, INT)
    ahead, sources = ct.arange(TILE, dtype=UINT), ()
    for axis in ct.static_iter(range(X.ndim - 1, -1, -1)):
        n, before, factor, offset, shift = axes[axis]
        first = first + begins[axis]
        if axis == 0:
            place = ct.astype(first, UINT) + ahead
        else:
            place = ct.astype(first % n, UINT) + ahead
            first = first // n
            # place // n: a division would take longer than memory does
            ahead = (place * ct.astype(factor, UINT) + ct.astype(offset, UINT)) >> ct.astype(shift, UINT)
            place = place - ahead * ct.astype(n, UINT)
        sources = (place.astype(INT) - before, *sources)
    ct.store(Y, (ct.bid(0),), ct.gather(X, sources, padding_value=VALUE), allow_tma=False)


@ct.kernel
def _pad_kernel(X, Y, begins: tuple, axes: tuple, VALUE: ct.Constant, TILE: ct.Constant[int]):
    _pad(X, Y, begins, axes, VALUE, TILE, ct.int32, ct.uint32)


@ct.kernel
def _pad_wide_kernel(
    X: ct.IndexedWithInt64,
    Y,
    begins: tuple[ct.ScalarInt64, ...],
    axes: tuple[tuple[ct.ScalarInt64, ...], ...],
    VALUE: ct.Constant,
    TILE: ct.Constant[int],
):
    """The same for longer axes and strides, which need wider indices."""
    _pad(X, Y, begins, axes, VALUE, TILE, ct.int64, ct.uint64)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_KERNELS = {
    False: _pad_kernel.replace_hints(**HINTS),
    True: _pad_wide_kernel.replace_hints(**HINTS),
}


def _merged(shape, steps, before, sizes):
    """Axes as (length with padding, elements before, length, stride): neighbours are one where the second has none."""
    axes = []
    for n, step, begin, size in zip(shape, steps, before, sizes, strict=True):
        if axes and n == size and begin == 0 and axes[-1][3] == n * step and axes[-1][0] * n <= PIECE:
            outer_size, outer_begin, outer_n, _ = axes.pop()
            axes.append((outer_size * n, outer_begin * n, outer_n * n, step))
        else:
            axes.append((size, begin, n, step))
    return axes


def _divisor(n):
    """(factor, offset, shift), so that i // n is (i * factor + offset) >> shift for each i < n + TILE, in 32 bits."""
    if n < TILE:
        shift = ((n + TILE) * n).bit_length()
        return 2**shift // n + 1, 0, shift
    shift = (n + TILE).bit_length()
    return 1, 2**shift - n, shift


@functools.lru_cache(maxsize=4096)
def _plan(shape, steps, before, sizes):
    """Choose (kernel, shape and strides of the input with few axes, arguments for each of these)."""
    sizes, before, shape, steps = zip(*_merged(shape, steps, before, sizes), strict=True)
    axes = tuple((n, begin, *_divisor(n)) for n, begin in zip(sizes, before, strict=True))
    return _KERNELS[max(*sizes, *steps) > PIECE], shape, steps, axes


def _pieces(n):
    """Start and length of pieces of n elements; the last n % 16 apart, so that the others are written as vectors."""
    whole = n - n % 16 if n > 2**16 else n
    for start in range(0, whole, PIECE):
        yield start, min(PIECE, whole - start)
    if whole < n:
        yield whole, n - whole


def _places(position, axes):
    """Where an element of the result lies along each axis."""
    places = ()
    for size, *_ in reversed(axes):
        places = (position % size, *places)
        position //= size
    return places


def _launch(x, y, before, constant):
    """Write `x` to `y`, with elements `constant` around it."""
    kernel, shape, steps, axes = _plan(tuple(x.shape), x.stride(), before, tuple(y.shape))
    x, y = x.as_strided(shape, steps), y.reshape(-1)
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        for start, n in _pieces(y.numel()):
            arguments = (x, y[start : start + n], _places(start, axes), axes, constant, TILE)
            ct.launch(stream, (ct.cdiv(n, TILE),), kernel, arguments)


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
