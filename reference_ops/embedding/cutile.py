"""cuTile backend of embedding."""

import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]

TILE = 4096  # elements of a tile: whole rows, or a part of one
COLUMNS = 1024  # whose sums a block forms
BLOCK = 1024  # elements that it has under way where there are fewer columns: of several rows
RUN = 4  # of these rows, at most, that are added up
SPAN = 256  # sorted indices that are added up beforehand where all of them are one
ENOUGH = 4096  # blocks, of which each goes along whole rows
HINTS_SUMS = {"num_worker_warps": 4, "occupancy": 8}  # from what the compiler reports
MAX_BLOCKS = 2**24 - 1  # along one axis of a grid
HINTS = {"num_worker_warps": 4, "occupancy": 8}  # from what the compiler reports


@ct.kernel(**HINTS)
def _embedding_kernel(
    W: ct.IndexedWithInt64, Index: ct.IndexedWithInt64, Y: ct.IndexedWithInt64, TILE_M: ConstInt, TILE_N: ConstInt
):
    """Rows of W (V, N) by Index (M,) into Y (M, N)."""
    parts = ct.int32(ct.cdiv(Y.shape[1], TILE_N))
    i, j = ct.bid(0) // parts, ct.bid(0) % parts
    rows = ct.load(Index, (i,), (TILE_M,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    columns = j * TILE_N + ct.arange(TILE_N, dtype=ct.int32)
    ty = ct.gather(W, (rows[:, None], columns[None, :]), padding_value=math.nan)
    ct.store(Y, (i, j), ty, allow_tma=False)


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
def _embedding_spans_kernel(
    dY: ct.IndexedWithInt64,
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
        total = _summed(total, dY, Order, first, first + SPAN, columns, True)
        ct.scatter(Sums, (ct.bid(0), columns), ct.sum(total, (0, 1)))


@ct.kernel(**HINTS_SUMS)
def _embedding_backward_kernel(
    dY: ct.IndexedWithInt64,
    Ends,
    Order,
    Sums: ct.IndexedWithInt64,
    dW: ct.IndexedWithInt64,
    padding: ct.ScalarInt64,
    SPAN: ConstInt,
    TILE: ct.Constant,
):
    """Each row of dW: the sum of the rows of dY in Order up to its own of Ends; those of whole spans are in Sums."""
    parts = ct.int32(ct.cdiv(dW.shape[1], TILE[2]))
    rows = ct.bid(0) * TILE[0] + ct.arange(TILE[0], dtype=ct.int32)
    begin, end = ct.gather(Ends, rows).astype(ct.int32), ct.gather(Ends, rows + 1).astype(ct.int32)
    end = ct.where(rows == padding, begin, ct.maximum(begin, end))  # beyond the last row there is no end
    empty = ct.max(end - begin) == 0  # as most rows of a large table are
    first, last = ct.cdiv(begin, SPAN), end // SPAN
    middle = ct.minimum(first * SPAN, end)
    for j in range(ct.bid(1), parts, ct.num_blocks(1)):
        columns = j * TILE[2] + ct.arange(TILE[2], dtype=ct.int32)
        place = (rows[:, None], columns[None, :])
        if TILE[0] == 1 and empty:
            ct.scatter(dW, place, ct.zeros((TILE[0], TILE[2]), dW.dtype))
        else:
            total = ct.zeros((TILE[0], TILE[1], TILE[2]), ct.float32)
            total = _summed(total, dY, Order, begin, middle, columns, True)
            total = _summed(total, dY, Order, ct.maximum(last * SPAN, middle), end, columns, True)
            total = _summed(total, Sums, Order, first, last, columns, False)
            ct.scatter(dW, place, ct.sum(total, 1).astype(dW.dtype))


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


def _sum_rows(dy, index, dw, padding):
    """Write to each row of `dw` the sum of the rows of `dy` whose index it is."""
    (v, n), m = dw.shape, index.numel()
    keys = index.clamp(-1, v).int()  # 32 bits sort faster; an index outside of the rows stays outside of them
    indices, order = torch.sort(keys, stable=True)
    ends = torch.searchsorted(indices, torch.arange(v + 1, dtype=torch.int32, device=index.device))
    spans, tile_n = m // SPAN, min(_power_of_two(n), COLUMNS)
    room = BLOCK // tile_n
    tile_m = max(1, room // RUN)
    while ct.cdiv(v, tile_m) > MAX_BLOCKS:
        tile_m *= 2
    parts, blocks, tile = ct.cdiv(n, tile_n), ct.cdiv(v, tile_m), (tile_m, min(room, RUN), tile_n)
    sums = torch.empty((max(spans, 1), n), dtype=torch.promote_types(dy.dtype, torch.float32), device=dy.device)
    with torch.cuda.device(dy.device):
        stream = torch.cuda.current_stream(dy.device)
        if spans:
            arguments = (dy, indices, order, sums, SPAN, room, tile_n)
            ct.launch(stream, (spans, parts), _embedding_spans_kernel, arguments)
        arguments = (dy, ends, order, sums, dw, padding, SPAN, tile)
        grid = (blocks, min(parts, ct.cdiv(ENOUGH, blocks)))
        ct.launch(stream, grid, _embedding_backward_kernel, arguments)


def _forward(index, weight, out=None):
    # Through a tensor of its own where `out` is strided or may overlap an input
    storages = [t.untyped_storage().data_ptr() for t in (index, weight) if out is not None]
    direct = out is not None and out.is_contiguous() and out.untyped_storage().data_ptr() not in storages
    m, n = index.numel(), weight.shape[1]
    y = out if direct else torch.empty((*index.shape, n), dtype=weight.dtype, device=weight.device)
    if y.numel():
        tile_n = min(_power_of_two(n), TILE)
        tile_m, parts = min(_power_of_two(m), TILE // tile_n), ct.cdiv(n, tile_n)
        while ct.cdiv(m, tile_m) * parts > MAX_BLOCKS:
            tile_m *= 2
        arguments = (weight, index.reshape(-1), y.view(m, n), tile_m, tile_n)
        with torch.cuda.device(weight.device):
            stream, grid = torch.cuda.current_stream(weight.device), (ct.cdiv(m, tile_m) * parts,)
            ct.launch(stream, grid, _embedding_kernel, arguments)
    return y if out is None or direct else out.copy_(y)


class _Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, index, weight, padding):
        ctx.save_for_backward(index)
        ctx.constants = (weight.shape, padding)
        return _forward(index, weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        (index,) = ctx.saved_tensors
        shape, padding = ctx.constants
        dw = (torch.empty if dy.numel() else torch.zeros)(shape, dtype=dy.dtype, device=dy.device)
        if dy.numel() and dw.numel():
            _sum_rows(dy.reshape(-1, shape[1]), index.reshape(-1), dw, padding)
        return None, dw, None


@register_impl("embedding", backend="cutile")
def embedding(
    index: torch.Tensor,
    weight: torch.Tensor,
    padding_idx: int | None = None,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Rows of a table, one for each index."""
    if kwargs:
        raise TypeError(f"embedding got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(weight, torch.Tensor) or weight.dtype not in _DTYPES:
        found = getattr(weight, "dtype", type(weight).__name__)
        raise TypeError(f"weight is {found}; it must be a tensor of float32, float16, bfloat16")
    if not weight.is_cuda:
        raise ValueError(f"weight is on {weight.device}; it must be on a CUDA device")
    if weight.ndim != 2:
        raise ValueError(f"weight has shape {tuple(weight.shape)}; it must be (V, D)")
    if not isinstance(index, torch.Tensor) or index.dtype not in (torch.int32, torch.int64):
        found = getattr(index, "dtype", type(index).__name__)
        raise TypeError(f"index is {found}; it must be a tensor of int32 or int64")
    if index.device != weight.device:
        raise ValueError(f"index is on {index.device}; it must be on {weight.device}, like weight")
    if padding_idx is not None and not isinstance(padding_idx, int):
        raise TypeError(f"padding_idx is {padding_idx!r}; it must be an int or None")
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise ValueError(f"padding_idx is {padding_idx}; weight has {weight.shape[0]} rows")
    shape = (*index.shape, weight.shape[1])
    if out is not None and (tuple(out.shape) != shape or out.dtype != weight.dtype or out.device != weight.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {weight.dtype} on {weight.device}")
    if torch.is_grad_enabled() and weight.requires_grad:
        if out is not None:
            raise ValueError("out is given and weight requires a gradient; use torch.no_grad(), or leave out away")
        padding = -1 if padding_idx is None else padding_idx % weight.shape[0]
        return _Embedding.apply(index, weight, padding)
    return _forward(index, weight, out)
