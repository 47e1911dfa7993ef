"""cuTile backend of cumsum."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]

TILING = {
    # (rows of a tile, its elements along a row, neighbours that one thread folds, warps, blocks on a multiprocessor)
    "short rows": (32, 16, 8, 4, 2),
    "rows": (1, 1024, 8, 4, ct.ByTarget(sm_90=8, default=4)),  # measured on sm_90
    "columns": (256, 8, 8, 4, ct.ByTarget(sm_90=4, default=2)),  # measured on sm_90
}
BLOCKS = 512  # with fewer blocks rows are split, to keep the whole GPU busy
CHUNKS_PER_SPLIT = 4  # tiles that each split reads, at least
MAX_BLOCKS = 2**24 - 1  # along one axis of a grid
# The dtype that is computed in, where it differs.
WIDE = {ct.float16: ct.float32, ct.bfloat16: ct.float32}


def _add(a, b):
    return a + b


def _running(t, fold, IDENTITY, REVERSE, GROUP):
    """Fold a tile along its last axis: the result so far at every element, and that of all."""
    m, r, n = t.shape
    # Within a group a thread goes from one element to the next; only the results of groups are passed around.
    t = t.reshape((m, r, n // GROUP, GROUP))
    groups = ct.reduce(t, 3, fold, IDENTITY, keepdims=True)

    def join(last, before, next_last, next_before):  # `before` leaves the last group out
        return fold(last, next_last), fold(last, next_before)

    empty = ct.full(groups.shape, IDENTITY, t.dtype)
    _, before = ct.scan((groups, empty), 2, join, (IDENTITY, IDENTITY), reverse=REVERSE)
    t = fold(before, ct.scan(t, 3, fold, IDENTITY, reverse=REVERSE))
    return t.reshape((m, r, n)), ct.reduce(groups, 2, fold, IDENTITY, keepdims=True).reshape((m, r, 1))


def _tiles(X, chunks, TILE_R, TILE_N):
    """What this block works on: its tile of rows, its split of them, and the tiles of the split."""
    blocks = ct.int32(ct.cdiv(X.shape[1], TILE_R))
    m, r, split = ct.bid(0) // blocks, ct.bid(0) % blocks, ct.bid(1)
    tiles = ct.int32(ct.cdiv(X.shape[2], TILE_N))
    return m, r, split, tiles, split * chunks, ct.minimum((split + 1) * chunks, tiles)


def _load(X, index, tile):
    """Tile of X in the dtype that is computed in; what lies outside changes no result."""
    tx = ct.load(X, index, tile, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    return tx.astype(ct.static_eval(WIDE.get(X.dtype, X.dtype)))


@ct.kernel
def _cumsum_kernel(
    X: ct.IndexedWithInt64,
    Y: ct.IndexedWithInt64,
    Carry: ct.IndexedWithInt64,
    chunks: int,
    SPLIT: ConstBool,
    REVERSE: ConstBool,
    TILE_M: ConstInt,
    TILE_R: ConstInt,
    TILE_N: ConstInt,
    GROUP: ConstInt,
):
    """Rows along N of X (M, R, N), or a split of them; Carry (M, R, splits): what comes before."""
    m, r, split, tiles, begin, end = _tiles(X, chunks, TILE_R, TILE_N)
    kept = (TILE_M, TILE_R, 1)
    carry = ct.full(kept, 0, ct.static_eval(WIDE.get(X.dtype, X.dtype)))
    if SPLIT:
        if split > 0:
            carry = ct.load(Carry, (m, r, split - 1), kept, padding_mode=ct.PaddingMode.ZERO)
    for step in range(begin, end):
        k = tiles - 1 - step if REVERSE else step
        tx = _load(X, (m, r, k), (TILE_M, TILE_R, TILE_N))
        ty, total = _running(tx, _add, 0, REVERSE, GROUP)
        ct.store(Y, (m, r, k), _add(carry, ty).astype(Y.dtype), allow_tma=False)
        carry = _add(carry, total)


@ct.kernel
def _cumsum_totals_kernel(
    X: ct.IndexedWithInt64,
    Total: ct.IndexedWithInt64,
    chunks: int,
    REVERSE: ConstBool,
    TILE_M: ConstInt,
    TILE_R: ConstInt,
    TILE_N: ConstInt,
):
    """What each split of rows along N of X (M, R, N) comes to: Total (M, R, splits)."""
    m, r, split, tiles, begin, end = _tiles(X, chunks, TILE_R, TILE_N)
    tile = (TILE_M, TILE_R, TILE_N)
    acc = ct.full(tile, 0, ct.static_eval(WIDE.get(X.dtype, X.dtype)))
    for step in range(begin, end):
        k = tiles - 1 - step if REVERSE else step
        acc = _add(acc, _load(X, (m, r, k), tile))
    ct.store(Total, (m, r, split), ct.reduce(acc, 2, _add, 0, keepdims=True))


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
# The dtype of what one split leaves to the next, where it differs.
_WIDE = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.cache
def _hinted(kernel, tiling):
    """Kernel with the hints of a tiling."""
    _, _, _, warps, occupancy = TILING[tiling]
    return kernel.replace_hints(num_worker_warps=warps, occupancy=occupancy)


@functools.lru_cache(maxsize=4096)
def _plan(m, r, n):
    """Choose (tiling, grid, tiles of a split, tile, neighbours in a group) for rows (M, R, N)."""
    tiling = "columns" if r > 1 else "short rows" if n <= TILING["short rows"][1] else "rows"
    rows, along, group, _, _ = TILING[tiling]
    tile_m = min(_power_of_two(m), rows) if r == 1 else 1
    tile_r = min(_power_of_two(r), rows)
    tile_n = min(_power_of_two(n), along)
    blocks, tiles = ct.cdiv(m, tile_m) * ct.cdiv(r, tile_r), ct.cdiv(n, tile_n)
    chunks = max(ct.cdiv(tiles, BLOCKS // blocks or 1), CHUNKS_PER_SPLIT)
    return tiling, (blocks, ct.cdiv(tiles, chunks)), chunks, (tile_m, tile_r, tile_n), min(group, tile_n)


def _rows(x, dim):
    """View `x` as (M, R, N), where N is `dim`; a copy only where its strides cannot express that."""
    shape = x.shape or (1,)
    m, n, r = math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])
    return x.reshape(m, n, r).transpose(1, 2) if r > 1 else x.reshape(m, 1, n)


def _launch(kernel, tiling, grid, arguments):
    x = arguments[0]
    with torch.cuda.device(x.device):
        ct.launch(torch.cuda.current_stream(x.device), grid, _hinted(kernel, tiling), arguments)


def _scan(x, y, reverse):
    """Write the scan of rows along N of `x` (M, R, N) to `y`."""
    if x.shape[1] == 1 and x.stride(0) == 1:
        x, y = x.transpose(0, 1), y.transpose(0, 1)
    tiling, grid, chunks, tile, group = _plan(*x.shape)
    if grid[0] > MAX_BLOCKS:
        for part in zip(*(t.tensor_split(2, int(x.shape[0] == 1)) for t in (x, y)), strict=True):
            _scan(*part, reverse)
        return
    split = grid[1] > 1
    carry = y  # not read where there is one split
    if split:
        totals = x.new_empty((*x.shape[:2], grid[1]), dtype=_WIDE.get(x.dtype, x.dtype))
        carry = torch.empty_like(totals)
        _launch(_cumsum_totals_kernel, tiling, grid, (x, totals, chunks, reverse, *tile))
        _scan(totals.view(-1, 1, grid[1]), carry.view(-1, 1, grid[1]), False)
    arguments = (x, y, carry, chunks, split, reverse, *tile, group)
    _launch(_cumsum_kernel, tiling, grid, arguments)


def _own(out, x):
    """`out`, or a tensor of its own where `out` is strided or may overlap `x`."""
    shared = out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    return out if out.is_contiguous() and not shared else torch.empty(out.shape, dtype=out.dtype, device=out.device)


@register_impl("cumsum", backend="cutile")
def cumsum(
    x: torch.Tensor,
    dim: int = -1,
    reverse: bool = False,
    exclusive: bool = False,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Running sum along one dimension, accumulated in fp32 or wider."""
    if kwargs:
        raise TypeError(f"cumsum got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    if not isinstance(dim, int):
        raise TypeError(f"dim is {dim!r}; it must be an int")
    span = x.ndim or 1  # a scalar counts as one element along dimension 0
    if not -span <= dim < span:
        raise ValueError(f"dim is {dim}; it must lie between {-span} and {span - 1}, because x has {x.ndim} dimensions")
    if out is None:
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    elif out.shape != x.shape or out.dtype != x.dtype or out.device != x.device:
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {tuple(x.shape)} of {x.dtype} on {x.device}")
    if x.numel() == 0:
        return out
    y = _own(out, x)
    rows, results = _rows(x, dim % span), _rows(y, dim % span)
    if exclusive:  # the same scan, shifted by one element
        results[:, :, -1 if reverse else 0] = 0
        n = rows.shape[2] - 1
        rows, results = (rows[:, :, 1:], results[:, :, :n]) if reverse else (rows[:, :, :n], results[:, :, 1:])
    if rows.shape[2] > 0:
        _scan(rows, results, reverse)
    return out if y is out else out.copy_(y)
