"""cuTile backend of cummax."""

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
    "rows": (1, 2048, 8, 4, 4),  # measured on sm_90
    "columns": (128, 16, 16, 4, ct.ByTarget(sm_90=3, default=2)),
}
BLOCKS = 512  # with fewer blocks rows are split, to keep the whole GPU busy
CHUNKS_PER_SPLIT = 4  # tiles that each split reads, at least
MAX_BLOCKS = 2**24 - 1  # along one axis of a grid
# The dtype that is computed in, where it differs.
WIDE = {ct.float16: ct.float32, ct.bfloat16: ct.float32}


def _larger(a, b):
    # Every comparison with NaN is false, so once `a` is NaN it stays; a NaN in `b` has to be asked for.
    return ct.where((b > a) | (b != b), b, a)


def _later(i, j):
    return ct.maximum(i, j)


def _lane(TILE_N, REVERSE):
    """Place of each element of a tile, in the order of the scan."""
    lane = ct.arange(TILE_N, dtype=ct.int32)
    return TILE_N - 1 - lane if REVERSE else lane


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


def _load(X, index, tile, REVERSE):
    """Tile of X in the dtype that is computed in; what lies outside changes no result."""
    tx = ct.load(X, index, tile, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    if REVERSE:  # then it comes first
        inside = ct.arange(tile[2], dtype=ct.int32) < X.shape[2] - ct.int64(index[2]) * tile[2]
        tx = ct.where(inside, tx, -math.inf)
    return tx.astype(ct.static_eval(WIDE.get(X.dtype, X.dtype)))


@ct.kernel
def _cummax_kernel(
    X: ct.IndexedWithInt64,
    Value: ct.IndexedWithInt64,
    Index: ct.IndexedWithInt64,
    CarryValue: ct.IndexedWithInt64,
    CarryIndex: ct.IndexedWithInt64,
    chunks: int,
    SPLIT: ConstBool,
    REVERSE: ConstBool,
    TILE_M: ConstInt,
    TILE_R: ConstInt,
    TILE_N: ConstInt,
    GROUP: ConstInt,
):
    """Rows along N of X (M, R, N), or a split of them; CarryValue and CarryIndex (M, R, splits): what comes before."""
    m, r, split, tiles, begin, end = _tiles(X, chunks, TILE_R, TILE_N)
    kept = (TILE_M, TILE_R, 1)
    value = ct.full(kept, -math.inf, ct.static_eval(WIDE.get(X.dtype, X.dtype)))
    index = ct.zeros(kept, ct.int64)
    if SPLIT:
        if split > 0:
            value = ct.load(CarryValue, (m, r, split - 1), kept, padding_mode=ct.PaddingMode.ZERO)
            index = ct.load(CarryIndex, (m, r, split - 1), kept, padding_mode=ct.PaddingMode.ZERO)
    for step in range(begin, end):
        k = tiles - 1 - step if REVERSE else step
        tx = _load(X, (m, r, k), (TILE_M, TILE_R, TILE_N), REVERSE)
        tvalue, top = _running(tx, _larger, -math.inf, REVERSE, GROUP)
        tvalue = _larger(value, tvalue)
        value = _larger(value, top)

        # Where an element is the largest so far it is the last such; positions count in the order of the scan
        lane = _lane(TILE_N, REVERSE)
        position = ct.where((tx == tvalue) | (tx != tx), lane, -1)
        position, last = _running(position, _later, -1, REVERSE, GROUP)
        start = ct.int64(step) * TILE_N
        tindex = ct.where(position < 0, index, start + position)
        index = ct.where(last < 0, index, start + last)
        if REVERSE:
            tindex = ct.int64(tiles) * TILE_N - 1 - tindex
        ct.store(Value, (m, r, k), tvalue.astype(Value.dtype), allow_tma=False)
        ct.store(Index, (m, r, k), tindex, allow_tma=False)


@ct.kernel
def _cummax_totals_kernel(
    X: ct.IndexedWithInt64,
    Value: ct.IndexedWithInt64,
    Index: ct.IndexedWithInt64,
    chunks: int,
    REVERSE: ConstBool,
    TILE_M: ConstInt,
    TILE_R: ConstInt,
    TILE_N: ConstInt,
):
    """What each split of rows along N of X (M, R, N) comes to: Value and Index (M, R, splits)."""
    m, r, split, tiles, begin, end = _tiles(X, chunks, TILE_R, TILE_N)
    tile = (TILE_M, TILE_R, TILE_N)
    lane = _lane(TILE_N, REVERSE)
    best = ct.full(tile, -math.inf, ct.static_eval(WIDE.get(X.dtype, X.dtype)))
    position = ct.zeros(tile, ct.int64)
    for step in range(begin, end):
        k = tiles - 1 - step if REVERSE else step
        tx = _load(X, (m, r, k), tile, REVERSE)
        best = _larger(best, tx)
        position = ct.where((tx == best) | (tx != tx), ct.int64(step) * TILE_N + lane, position)
    value = ct.reduce(best, 2, _larger, -math.inf, keepdims=True)
    last = ct.max(ct.where((best == value) | (best != best), position, 0), 2, keepdims=True)
    ct.store(Value, (m, r, split), value)
    ct.store(Index, (m, r, split), last)


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


def _scan(x, value, index, reverse):
    """Write the scan of rows along N of `x` (M, R, N) to `value` and `index`."""
    if x.shape[1] == 1 and x.stride(0) == 1:
        x, value, index = x.transpose(0, 1), value.transpose(0, 1), index.transpose(0, 1)
    tiling, grid, chunks, tile, group = _plan(*x.shape)
    if grid[0] > MAX_BLOCKS:
        for part in zip(*(t.tensor_split(2, int(x.shape[0] == 1)) for t in (x, value, index)), strict=True):
            _scan(*part, reverse)
        return
    split = grid[1] > 1
    carry = value, index  # not read where there is one split
    if split:
        top = x.new_empty((*x.shape[:2], grid[1]), dtype=_WIDE.get(x.dtype, x.dtype))
        last = torch.empty_like(top, dtype=torch.int64)
        arguments = (x, top, last, chunks, reverse, *tile)
        _launch(_cummax_totals_kernel, tiling, grid, arguments)
        carry = torch.empty_like(top), torch.empty_like(last)
        _scan(*(t.view(-1, 1, grid[1]) for t in (top, *carry)), False)
        carry = carry[0], last.gather(2, carry[1])
    arguments = (x, value, index, *carry, chunks, split, reverse, *tile, group)
    _launch(_cummax_kernel, tiling, grid, arguments)


def _own(out, x):
    """`out`, or a tensor of its own where `out` is strided or may overlap `x`."""
    shared = out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    return out if out.is_contiguous() and not shared else torch.empty(out.shape, dtype=out.dtype, device=out.device)


@register_impl("cummax", backend="cutile")
def cummax(
    x: torch.Tensor,
    dim: int = -1,
    reverse: bool = False,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Largest value so far along one dimension, and where it last was; NaN is the largest."""
    if kwargs:
        raise TypeError(f"cummax got unexpected arguments: {', '.join(kwargs)}")
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
        out = tuple(torch.empty(x.shape, dtype=dtype, device=x.device) for dtype in (x.dtype, torch.int64))
    if len(out) != 2:
        raise ValueError(f"out is {len(out)} tensors; it must be 2, values and indices")
    for name, tensor, dtype in zip(("values", "indices"), out, (x.dtype, torch.int64), strict=True):
        if tensor.shape != x.shape or tensor.dtype != dtype or tensor.device != x.device:
            found = f"{tuple(tensor.shape)} of {tensor.dtype} on {tensor.device}"
            raise ValueError(f"out has {name} {found}; they must be {tuple(x.shape)} of {dtype} on {x.device}")
    if x.numel() == 0:
        return out
    results = [_own(tensor, x) for tensor in out]
    _scan(*(_rows(tensor, dim % span) for tensor in (x, *results)), reverse)
    for tensor, result in zip(out, results, strict=True):
        if result is not tensor:
            tensor.copy_(result)
    return out
