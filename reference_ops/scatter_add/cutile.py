"""cuTile backend of scatter_add."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]

# For a last axis of so many elements, at most: elements of a tile, those of them along this axis, and warps
GATHERED = ((1024, 1024, 1024, 4), (4096, 2048, 1024, 4), (math.inf, 4096, 4096, 8))
ADDED = ((math.inf, 256, 256, 4),)
LONG = 256  # elements of a row from which on indices are sorted; of fewer, sums by atomics are as fast
COLUMNS = 1024  # whose sums a block forms
BLOCK = 1024  # elements that it has under way where there are fewer columns: of several rows
RUN = 4  # of these rows, at most, that are added up
SPAN = 256  # sorted indices that are added up beforehand where all of them are one
ENOUGH = 4096  # blocks, of which each goes along whole rows
HINTS_SUMS = {"num_worker_warps": 4, "occupancy": 7}  # from what the compiler reports
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
    """Place of each element of this block's tile along every axis, and the same with what Index says along DIM."""
    own, said = (), ()
    for axis in ct.static_iter(range(len(TILE))):
        place = tile_index[axis] * TILE[axis] + ct.arange(TILE[axis], dtype=ct.int32)
        # The last axis of an array is the first of a tile, which neighbours in a warp go along: they load neighbours
        own += (place.reshape(ct.static_eval((TILE[axis],) + (1,) * axis)),)
    t = ct.gather(Index, own if Index.ndim == len(TILE) else own[DIM], padding_value=-1)  # or one for each whole slice
    for axis in ct.static_iter(range(len(TILE))):
        said += (t if axis == DIM else own[axis],)
    return own, said


def _added(Y, Index, X, DIM, TILE):
    """Add the elements of X to Y, each where Index says along DIM."""
    own, said = _places(Index, _tile_index(X, TILE), DIM, TILE)
    # Sums have no order among them; with one each would wait for all memory
    ct.atomic_add(Y, said, ct.gather(X, own).astype(Y.dtype), memory_order=ct.MemoryOrder.RELAXED)


@ct.kernel(**HINTS)
def _scatter_add_kernel(Y, Index, X, DIM: ConstInt, SHAPE: ct.Constant):
    _added(Y, Index, X, DIM, SHAPE)


@ct.kernel(**HINTS)
def _scatter_add_wide_kernel(
    Y: ct.IndexedWithInt64, Index: ct.IndexedWithInt64, X: ct.IndexedWithInt64, DIM: ConstInt, SHAPE: ct.Constant
):
    """The same for arrays of 2^31 elements or more, which need wider indices."""
    _added(Y, Index, X, DIM, SHAPE)


def _taken(X, Index, Y, DIM, TILE):
    """Y = the elements of X, each from where Index says along DIM."""
    own, said = _places(Index, _tile_index(Y, TILE), DIM, TILE)
    ct.scatter(Y, own, ct.gather(X, said))


@ct.kernel(**HINTS)
def _scatter_add_backward_kernel(X, Index, Y, DIM: ConstInt, SHAPE: ct.Constant):
    _taken(X, Index, Y, DIM, SHAPE)


@ct.kernel(**HINTS)
def _scatter_add_backward_wide_kernel(
    X: ct.IndexedWithInt64, Index: ct.IndexedWithInt64, Y: ct.IndexedWithInt64, DIM: ConstInt, SHAPE: ct.Constant
):
    """The same for arrays of 2^31 elements or more, which need wider indices."""
    _taken(X, Index, Y, DIM, SHAPE)


def _summed(total, Rows, Order, begin, end, columns, ORDERED: ConstBool):
    """`total` (R, K, N) and, K at a time, the Rows from `begin` to `end`, of which Order says where they are."""
    ahead = ct.arange(total.shape[1], dtype=ct.int32)[None, :]
    for k in range(0, ct.max(end - begin), total.shape[1]):
        place = begin[:, None] + k + ahead
        inside = place < end[:, None]
        if ORDERED:
            place = ct.gather(Order, place, mask=inside, padding_value=-1)
        else:
            place = ct.where(inside, place, -1)
        total = total + ct.gather(Rows, (place[:, :, None], columns[None, None, :])).astype(total.dtype)
    return total


@ct.kernel(**HINTS_SUMS)
def _scatter_add_spans_kernel(
    Src: ct.IndexedWithInt64,
    Indices,
    Order,
    Sums: ct.IndexedWithInt64,
    SPAN: ConstInt,
    TILE_K: ConstInt,
    TILE_N: ConstInt,
):
    """Sums of the rows for each whole SPAN of the sorted Indices in which all are one."""
    begin = ct.bid(0) * SPAN
    if ct.load(Indices, (begin,), ()) == ct.load(Indices, (begin + SPAN - 1,), ()):
        columns = ct.bid(1) * TILE_N + ct.arange(TILE_N, dtype=ct.int32)
        first = ct.full((1,), begin, ct.int32)
        total = ct.zeros((1, TILE_K, TILE_N), ct.float32)
        total = _summed(total, Src, Order, first, first + SPAN, columns, True)
        ct.scatter(Sums, (ct.bid(0), columns), ct.sum(total, (0, 1)))


@ct.kernel(**HINTS_SUMS)
def _scatter_add_rows_kernel(
    X: ct.IndexedWithInt64,
    Src: ct.IndexedWithInt64,
    Ends,
    Order,
    Sums: ct.IndexedWithInt64,
    Y: ct.IndexedWithInt64,
    SPAN: ConstInt,
    TILE: ct.Constant,
):
    """Each row of Y: that of X and the rows of Src in Order up to its own of Ends; those of whole spans are in Sums."""
    parts = ct.int32(ct.cdiv(Y.shape[1], TILE[2]))
    rows = ct.bid(0) * TILE[0] + ct.arange(TILE[0], dtype=ct.int32)
    begin, end = ct.gather(Ends, rows).astype(ct.int32), ct.gather(Ends, rows + 1).astype(ct.int32)
    end = ct.maximum(begin, end)  # beyond the last row there is none
    empty = ct.max(end - begin) == 0  # as most rows of a large table are
    first, last = ct.cdiv(begin, SPAN), end // SPAN
    middle = ct.minimum(first * SPAN, end)
    for j in range(ct.bid(1), parts, ct.num_blocks(1)):
        columns = j * TILE[2] + ct.arange(TILE[2], dtype=ct.int32)
        place = (rows[:, None], columns[None, :])
        if TILE[0] == 1 and empty:
            ct.scatter(Y, place, ct.gather(X, place))
        else:
            total = ct.zeros((TILE[0], TILE[1], TILE[2]), ct.float32)
            total = _summed(total, Src, Order, begin, middle, columns, True)
            total = _summed(total, Src, Order, ct.maximum(last * SPAN, middle), end, columns, True)
            total = _summed(total, Sums, Order, first, last, columns, False)
            ct.scatter(Y, place, (ct.gather(X, place).astype(ct.float32) + ct.sum(total, 1)).astype(Y.dtype))


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_KERNELS = (_scatter_add_kernel, _scatter_add_wide_kernel)
_KERNELS_BACKWARD = (
    _scatter_add_backward_kernel,
    _scatter_add_backward_wide_kernel,
)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.cache
def _hinted(kernel, warps):
    """Kernel with so many warps in a block."""
    return kernel.replace_hints(num_worker_warps=warps)


def _sum_rows(x, src, index, y):
    """Write to each row of `y` that of `x` and the sum of the rows of `src` whose index it is."""
    (v, n), m = y.shape, index.numel()
    keys = index.clamp(-1, v).int()  # 32 bits sort faster; an index outside of the rows stays outside of them
    indices, order = torch.sort(keys, stable=True)
    ends = torch.searchsorted(indices, torch.arange(v + 1, dtype=torch.int32, device=index.device))
    spans, tile_n = m // SPAN, min(_power_of_two(n), COLUMNS)
    room = BLOCK // tile_n
    tile_m = max(1, room // RUN)
    while ct.cdiv(v, tile_m) > MAX_BLOCKS:
        tile_m *= 2
    parts, blocks, tile = ct.cdiv(n, tile_n), ct.cdiv(v, tile_m), (tile_m, min(room, RUN), tile_n)
    wide = torch.float32 if x.element_size() == 2 else x.dtype
    sums = torch.empty((max(spans, 1), n), dtype=wide, device=x.device)
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        if spans:
            arguments = (src, indices, order, sums, SPAN, room, tile_n)
            ct.launch(stream, (spans, parts), _scatter_add_spans_kernel, arguments)
        arguments = (x, src, ends, order, sums, y, SPAN, tile)
        grid = (blocks, min(parts, ct.cdiv(ENOUGH, blocks)))
        ct.launch(stream, grid, _scatter_add_rows_kernel, arguments)


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


def _expanded(index, shape, dim):
    """`index` in each place of this shape, where it is one for each whole slice along `dim`."""
    return index.reshape(-1, *(1,) * (len(shape) - dim - 1)).expand(shape) if index.ndim == 1 < len(shape) else index


def _take(dy, dim, index, dsrc):
    """Write to `dsrc` the slices of `dy` along `dim` that `index` says."""
    a, b = math.prod(dsrc.shape[:dim]), math.prod(dsrc.shape[dim + 1 :])
    part = dy[tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(dsrc.shape))]
    _launch(_KERNELS_BACKWARD, SLICES, 1, index, part.reshape(a, -1, b), dsrc.reshape(a, -1, b))


def _forward(x, dim, index, src, out=None):
    # Through a tensor of its own where `out` is narrow, strided or may overlap an input
    storages = [t.untyped_storage().data_ptr() for t in (x, index, src) if out is not None]
    direct = out is not None and out.is_contiguous() and out.untyped_storage().data_ptr() not in storages
    long = index.ndim == 1 < x.ndim and math.prod(x.shape[dim + 1 :]) >= LONG  # slices, which are rows if dim is 0
    if long and dim == 0 and src.shape[1:] == x.shape[1:] and len(x) and 0 < len(index) < 2**31:
        y = out if direct else torch.empty(x.shape, dtype=x.dtype, device=x.device)
        _sum_rows(x.reshape(len(x), -1), src.reshape(len(src), -1), index, y.view(len(x), -1))
        return y if out is None or direct else out.copy_(y)
    index = _expanded(index, src.shape, dim)
    wide = torch.float32 if x.element_size() == 2 else x.dtype
    direct = direct and out.dtype == wide
    y = out if direct else torch.empty(x.shape, dtype=wide, device=x.device)
    y.copy_(x)
    if index.numel() and x.numel():
        part = src[tuple(slice(n) for n in index.shape)]
        _move(_KERNELS, ADDED, dim, index, y, part)
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
            _move(_KERNELS_BACKWARD, GATHERED, dim, index, dy, dsrc)
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
