"""cuTile backend of embedding."""

import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]

TILE = 4096  # elements of a tile: whole rows, or a part of one
TILE_N = 1024  # columns whose gradients a block adds up
BLOCK = 4096  # elements that it has under way: several rows of these columns
SPAN = 256  # indices, of the sorted ones, beyond which no block goes
HINTS_BACKWARD = {"num_worker_warps": 4, "occupancy": 6}
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


@ct.kernel(**HINTS_BACKWARD)
def _embedding_backward_kernel(
    dY: ct.IndexedWithInt64,
    Rows,
    Order,
    dW: ct.IndexedWithInt64,
    Edges: ct.IndexedWithInt64,
    padding: ct.ScalarInt64,
    SPAN: ConstInt,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
):
    """Sums of rows of dY, sorted by Order, for each of the sorted Rows of dW: by the block where its run begins.

    Runs end with every SPAN of Rows. The first and the last run of a span may be parts of longer ones, so they go to
    Edges (2 * spans, N), which are summed in the same way.
    """
    columns = ct.bid(1) * TILE_N + ct.arange(TILE_N, dtype=ct.int32)
    for i in range(ct.bid(0), Rows.shape[0], ct.num_blocks(0)):
        span = i // SPAN
        first = span * SPAN
        last = min(first + SPAN, Rows.shape[0])
        row = ct.load(Rows, (i,), ())
        rows = ct.load(Rows, (span,), (SPAN,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
        inside = ct.arange(SPAN, dtype=ct.int32) < last - first
        begin = first + ct.sum(ct.where(inside & (rows < row), 1, 0))
        if begin == i and row != padding:
            end = begin + ct.sum(ct.where(inside & (rows == row), 1, 0))
            total = ct.zeros((TILE_M, TILE_N), ct.float32)
            for k in range(begin, end, TILE_M):
                places = k + ct.arange(TILE_M, dtype=ct.int32)
                sources = ct.gather(Order, places, mask=places < end, padding_value=-1)
                total = total + ct.gather(dY, (sources[:, None], columns[None, :])).astype(total.dtype)
            total = ct.sum(total, 0)
            if Rows.shape[0] <= SPAN or (begin > first and end < last):
                ct.scatter(dW, (row, columns), total.astype(dW.dtype))
            else:
                ct.scatter(Edges, (2 * span + (0 if begin == first else 1), columns), total.astype(Edges.dtype))


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


def _sum_rows(dy, rows, order, dw, padding):
    """Write to each of the `rows` of `dw` the sum of the rows of `dy` that belong to it; `order` has sorted `rows`."""
    m, n = rows.numel(), dw.shape[1]
    spans, tile_n = ct.cdiv(m, SPAN), min(_power_of_two(n), TILE_N)
    edges = dw
    if spans > 1:
        wide = torch.promote_types(dy.dtype, torch.float32)
        edges = torch.zeros((2 * spans, n), dtype=wide, device=dy.device)
    arguments = (dy, rows, order, dw, edges, padding, SPAN, min(_power_of_two(m), BLOCK // tile_n), tile_n)
    with torch.cuda.device(dy.device):
        stream, grid = torch.cuda.current_stream(dy.device), (min(m, MAX_BLOCKS), ct.cdiv(n, tile_n))
        ct.launch(stream, grid, _embedding_backward_kernel, arguments)
    if spans > 1:
        first = torch.arange(0, m, SPAN, device=rows.device)
        places = torch.stack((first, (first + SPAN - 1).clamp(max=m - 1)), 1).view(-1)
        _sum_rows(edges, rows[places], torch.arange(2 * spans, device=rows.device), dw, padding)


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
        dw = torch.zeros(shape, dtype=dy.dtype, device=dy.device)
        if dy.numel() and dw.numel():
            rows, order = torch.sort(index.reshape(-1), stable=True)
            _sum_rows(dy.reshape(-1, shape[1]), rows, order, dw, padding)
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
