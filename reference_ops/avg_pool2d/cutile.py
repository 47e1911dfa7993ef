"""cuTile backend of avg_pool2d."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]

TILE = 1024  # results of a tile
TILE_W = 256  # of these along the last axis
MAX_BLOCKS = 2**24 - 1  # along one axis of a grid
LANES = 256  # results of a row, along the rows of all images as if they were one
ROWS = 8  # of results that a block goes down: they share rows of the input
MOST_LOADS = 64  # of a lane, for all rows of results; with more of them a block has a tile
HINTS = {  # by what a block computes, and whether indices need 64 bits; rows measured on sm_90
    "rows": {"num_worker_warps": 4, "occupancy": 4},
    "tile": {"num_worker_warps": 4, "occupancy": 4},
    "wide": {"num_worker_warps": 4, "occupancy": 4},
}


def _places(A, axis, tile, block):
    """Places of a tile's elements along an axis of A, and the block that the other axes go on with."""
    blocks = ct.cdiv(A.shape[axis], tile[axis])
    places = block % blocks * tile[axis] + ct.arange(tile[axis], dtype=ct.int32)
    # The last axis of an array is the first of a tile, which neighbours in a warp go along: they load neighbours
    return places.reshape(ct.static_eval((tile[axis],) + (1,) * axis)), block // blocks


def _count(X, axis, places, KERNEL, STRIDE, PADDING, COUNT_PAD):
    """Elements of each window along an axis that its mean is over."""
    begin = places * STRIDE - PADDING
    end = ct.minimum(begin + KERNEL, X.shape[axis] + PADDING)
    return end - begin if COUNT_PAD else ct.minimum(end, X.shape[axis]) - ct.maximum(begin, 0)


def _pool(X, Y, KERNEL, STRIDE, PADDING, COUNT_PAD, tile):
    """Reduce the windows of X (P, H, W) to Y, a tile of results in each block."""
    block = ct.bid(0)
    w, block = _places(Y, 2, tile, block)
    h, block = _places(Y, 1, tile, block)
    p, _ = _places(Y, 0, tile, block)
    acc = ct.full(tile[::-1], 0.0, ct.static_eval(ct.float64 if X.dtype == ct.float64 else ct.float32))
    for kh in range(KERNEL[0]):
        for kw in range(KERNEL[1]):
            xh = h * STRIDE[0] + (kh - PADDING[0])
            xw = w * STRIDE[1] + (kw - PADDING[1])
            acc = acc + ct.gather(X, (p, xh, xw))
    count = _count(X, 1, h, KERNEL[0], STRIDE[0], PADDING[0], COUNT_PAD)
    count = count * _count(X, 2, w, KERNEL[1], STRIDE[1], PADDING[1], COUNT_PAD)
    acc = acc / count.astype(acc.dtype)
    ct.scatter(Y, (p, h, w), acc.astype(Y.dtype))


def _is_in(r, first, stride, dilation, kernel):
    """Whether row r of the input is one of a window that begins in row `first` * `stride`."""
    offset = r - first * stride
    return offset % dilation == 0 and 0 <= offset < kernel * dilation


def _row(X, p, h, inside, w, STRIDE, LOADS):
    """What windows have of row h of X, place by place; zero unless `inside` says that there is such a row."""
    txs = ()
    for load in ct.static_iter(LOADS):
        start, elements, outside = load
        xw = w * STRIDE + start
        mask = inside & (xw >= 0) & (xw < X.shape[2]) if outside else inside
        if elements == 1:
            txs += (ct.gather(X, (p, h, xw), mask=mask, padding_value=0, check_bounds=False),)
        else:
            place = (p[:, None], h, xw[:, None] + ct.arange(elements, dtype=ct.int32))
            tx = ct.gather(X, place, mask=inside, padding_value=0, check_bounds=False)
            for k in ct.static_iter(range(elements)):
                txs += (ct.extract(tx, (0, k), (w.shape[0], 1)).reshape(w.shape),)
    return txs


@ct.kernel(**HINTS["rows"])
def _avg_pool2d_rows_kernel(
    X,
    Y,
    KERNEL: ct.Constant,
    STRIDE: ct.Constant,
    PADDING: ct.Constant,
    COUNT_PAD: ConstBool,
    COUNT: ConstInt,
    LOADS: ct.Constant,
    LANES: ConstInt,
    ROWS: ConstInt,
):
    """Reduce windows of X (P, H, W) to ROWS rows of Y from top to bottom, for which each row of X is read once.

    A block goes along the rows of all images as if they were one, so that no lane is idle. LOADS has where each load of
    a row begins, how many elements it has, and whether some windows have it outside. Each mean is over COUNT
    elements where that is not zero.
    """
    steps = ct.cdiv(Y.shape[1], ROWS)
    first, tile = ct.bid(0) % steps * ROWS, ct.bid(0) // steps
    # The first lane's image and column are found by one division; those of the others need few bits
    column = tile * LANES % Y.shape[2] + ct.arange(LANES, dtype=ct.int32)
    p, w = tile * LANES // Y.shape[2] + column // Y.shape[2], column % Y.shape[2]
    stored = p < Y.shape[0]
    p = ct.minimum(p, Y.shape[0] - 1)

    results = ()
    for _ in ct.static_iter(range(ROWS)):
        results += (ct.zeros(w.shape, ct.static_eval(ct.float64 if X.dtype == ct.float64 else ct.float32)),)
    for r in ct.static_iter(range((ROWS - 1) * STRIDE[0] + KERNEL[0])):
        if ct.static_eval(any(_is_in(r, k, STRIDE[0], 1, KERNEL[0]) for k in range(ROWS))):
            xh = first * STRIDE[0] + (r - PADDING[0])
            inside = (xh >= 0) & (xh < X.shape[1])
            txs = _row(X, p, xh, inside, w, STRIDE[1], LOADS)
            reduced = ()
            for k in ct.static_iter(range(ROWS)):
                if ct.static_eval(_is_in(r, k, STRIDE[0], 1, KERNEL[0])):
                    total = results[k]
                    for tx in ct.static_iter(txs):
                        total = total + tx
                    reduced += (total,)
                else:
                    reduced += (results[k],)
            results = reduced
    if COUNT == 0:
        columns = _count(X, 2, w, KERNEL[1], STRIDE[1], PADDING[1], COUNT_PAD)
    for k in ct.static_iter(range(ROWS)):
        h = first + k
        if COUNT:
            result = results[k] * (1.0 / COUNT)
        else:
            count = columns * _count(X, 1, h, KERNEL[0], STRIDE[0], PADDING[0], COUNT_PAD)
            result = results[k] / count.astype(results[k].dtype)
        ct.scatter(Y, (p, h, w), result.astype(Y.dtype), mask=stored & (h < Y.shape[1]), check_bounds=False)


@ct.kernel
def _avg_pool2d_kernel(
    X, Y, KERNEL: ct.Constant, STRIDE: ct.Constant, PADDING: ct.Constant, COUNT_PAD: ConstBool, TILE_SHAPE: ct.Constant
):
    _pool(X, Y, KERNEL, STRIDE, PADDING, COUNT_PAD, TILE_SHAPE)


@ct.kernel
def _avg_pool2d_wide_kernel(
    X: ct.IndexedWithInt64,
    Y: ct.IndexedWithInt64,
    KERNEL: ct.Constant,
    STRIDE: ct.Constant,
    PADDING: ct.Constant,
    COUNT_PAD: ConstBool,
    TILE_SHAPE: ct.Constant,
):
    """The same for arrays of 2^31 elements or more, which need wider indices."""
    _pool(X, Y, KERNEL, STRIDE, PADDING, COUNT_PAD, TILE_SHAPE)


RANK = 2  # dimensions of a window
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_KERNELS = {
    False: _avg_pool2d_kernel.replace_hints(**HINTS["tile"]),
    True: _avg_pool2d_wide_kernel.replace_hints(**HINTS["wide"]),
}


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.lru_cache(maxsize=4096)
def _plan(shape):
    """Tile of results (P, ...) and number of blocks."""
    tile, room = [], TILE
    for n in reversed(shape):
        tile.insert(0, min(_power_of_two(n), room if tile else TILE_W))
        room //= tile[0]
    while (blocks := math.prod(ct.cdiv(n, t) for n, t in zip(shape, tile, strict=True))) > MAX_BLOCKS:
        tile[0] *= 2
    return tuple(tile), (blocks,)


def _per_dimension(name, value, least):
    """A length for each of the last dimensions."""
    values = (value,) * RANK if isinstance(value, int) else value
    if not isinstance(values, tuple | list) or not all(isinstance(v, int) for v in values):
        raise TypeError(f"{name} is {value!r}; it must be an int or {RANK} ints")
    if len(values) != RANK or min(values) < least:
        raise ValueError(f"{name} is {value}; it must be {RANK} ints of at least {least}, or one for all dimensions")
    return tuple(values)


def _results(n, kernel, stride, padding, ceil_mode):
    """Number of windows along a dimension of `n` elements."""
    span = n + 2 * padding - kernel
    windows = (ct.cdiv(span, stride) if ceil_mode else span // stride) + 1
    # A window that would begin in the far padding is none
    return windows - 1 if ceil_mode and (windows - 1) * stride >= n + padding else windows


def _own(out, x):
    """`out`, or a tensor of its own where `out` is strided or may overlap `x`."""
    shared = out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    return out if out.is_contiguous() and not shared else torch.empty(out.shape, dtype=out.dtype, device=out.device)


def _is_wide(tensor):
    """Whether 32 bits are too few for the places of its elements."""
    span = 0
    for n, step in zip(tensor.shape, tensor.stride(), strict=True):
        span += n * step
    return span >= 2**31


def _loads(width, results, kernel, stride, padding):
    """How windows read a row of `width` elements: first place and length of each load, and whether some are outside."""
    first = [k - padding for k in range(kernel)]
    outside = [x < 0 or x + (results - 1) * stride >= width for x in first]
    loads, k = [], 0
    while k < kernel:
        # As many elements as a stride are a single load where they are side by side, aligned and always inside
        aligned = stride in (2, 4) and first[k] % stride == 0
        length = stride if aligned and k + stride <= kernel and not any(outside[k : k + stride]) else 1
        loads.append((first[k], length, outside[k]))
        k += length
    return tuple(loads)


def _same_count(lengths, results, kernel, stride, padding, count_include_pad):
    """Elements that each mean is over, or 0 where the windows at the edges have fewer of them."""
    axes = zip(lengths, results, kernel, stride, padding, strict=True)
    within = all((m - 1) * step + k <= n + 2 * zeros for n, m, k, step, zeros in axes)
    return math.prod(kernel) if within and (count_include_pad or not any(padding)) else 0


@functools.lru_cache(maxsize=4096)
def _rows_plan(shape, lengths, windows):
    """What the kernel knows of windows, and number of blocks, for results (P, H, W); None where a tile is better."""
    p, h, w = shape
    kernel, stride, padding, _ = windows
    lanes, rows = min(LANES, _power_of_two(p * w)), min(ROWS, h)
    read = (rows - 1) * stride[0] + kernel[0]  # rows, at most
    blocks = ct.cdiv(p * w, lanes) * ct.cdiv(h, rows)
    if min(read, rows * kernel[0]) * kernel[1] > MOST_LOADS or blocks > MAX_BLOCKS:
        return None
    loads = _loads(lengths[1], w, kernel[1], stride[1], padding[1])
    return _same_count(lengths, (h, w), *windows), loads, lanes, rows, (blocks,)


def _launch(x, results, windows):
    """Pool `x` into `results`, tensors with the same leading dimensions."""
    arrays = [t.reshape(-1, *t.shape[t.ndim - RANK :]) for t in (x, *results)]
    shape, wide = tuple(arrays[1].shape), any(_is_wide(t) for t in arrays)
    kernel = _avg_pool2d_rows_kernel
    plan = _rows_plan(shape, tuple(x.shape[-2:]), windows)
    if wide or plan is None:
        kernel, plan = _KERNELS[wide], _plan(shape)
    *constants, grid = plan
    with torch.cuda.device(x.device):
        ct.launch(torch.cuda.current_stream(x.device), grid, kernel, (*arrays, *windows, *constants))


@register_impl("avg_pool2d", backend="cutile")
def avg_pool2d(
    x: torch.Tensor,
    kernel_size: int | tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Mean of every window, accumulated in fp32 or wider."""
    if kwargs:
        raise TypeError(f"avg_pool2d got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    if x.ndim < RANK:
        raise ValueError(f"x has shape {tuple(x.shape)}; it must have at least {RANK} dimensions, those of a window")
    lengths = x.shape[x.ndim - RANK :]
    kernel = _per_dimension("kernel_size", kernel_size, 1)
    stride = kernel if stride is None else _per_dimension("stride", stride, 1)
    padding = _per_dimension("padding", padding, 0)
    if any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
        raise ValueError(f"padding is {padding}; it must be at most half of kernel_size, which is {kernel}")
    windows = zip(lengths, kernel, stride, padding, strict=True)
    size = tuple(_results(*window, ceil_mode) for window in windows)
    if min(size) < 1:
        raise ValueError(f"x has shape {tuple(x.shape)}; its last {RANK} dimensions must hold a window of {kernel}")
    shape = (*x.shape[: x.ndim - RANK], *size)
    if out is None:
        out = torch.empty(shape, dtype=x.dtype, device=x.device)
    elif out.shape != shape or out.dtype != x.dtype or out.device != x.device:
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {x.dtype} on {x.device}")
    if out.numel() == 0:
        return out
    result = _own(out, x)
    _launch(x, (result,), (kernel, stride, padding, count_include_pad))
    return out if result is out else out.copy_(result)
