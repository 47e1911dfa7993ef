"""cuTile backend of topk."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]

MOST = 64  # elements of a row that are found, one after the other
TILE_N = 1024  # lanes of a row; the elements of a lane are so far from each other
BLOCK = 1024  # elements of several short rows together
BLOCKS = 512  # with fewer blocks rows are split, to keep the whole GPU busy
CHUNKS_PER_SPLIT = 16  # tiles that each split reads, at least
MAX_BLOCKS = 2**24 - 1  # along one axis of a grid
HINTS = {"occupancy": 8, "num_worker_warps": 4}  # measured on sm_90
NOTHING = -(2**31)  # less than the key of any element


def _key(t, LARGEST: ConstBool):
    """Integers in the order of the elements, the wanted ones high; NaN is above infinity."""
    bits = ct.bitcast(t.astype(ct.float32), ct.int32)
    key = ct.where(t == t, ct.where(bits < 0, bits ^ 0x7FFFFFFF, bits), 0x7FFFFFFE)
    return key if LARGEST else ~key


def _element(key, LARGEST: ConstBool):
    """What has this key."""
    key = key if LARGEST else ~key
    return ct.bitcast(ct.where(key < 0, key ^ 0x7FFFFFFF, key), ct.float32)


def _first(keys, places):
    """The highest key of each row, and its first place."""
    top = ct.max(keys, 1, keepdims=True)
    return top, ct.min(ct.where(keys == top, places, 2**31 - 1), 1, keepdims=True)


@ct.kernel(**HINTS)
def _topk_kernel(
    X: ct.IndexedWithInt64,
    Value: ct.IndexedWithInt64,
    Index: ct.IndexedWithInt64,
    k: int,
    LARGEST: ConstBool,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILE_S: ConstInt,
    TILE_K: ConstInt,
):
    """The first k of rows of X (M, N), or of TILE_S tiles of them: Value and Index (M, splits, k)."""
    i, split = ct.bid(0), ct.bid(1)
    tiles = ct.int32(ct.cdiv(X.shape[1], TILE_N))
    begin = ct.int32(ct.int64(split) * tiles // ct.num_blocks(1))
    end = ct.int32(ct.int64(split + 1) * tiles // ct.num_blocks(1))
    start = ct.int64(begin) * TILE_N
    lane = ct.arange(TILE_N, dtype=ct.int32)[None, :]

    # The best of every lane: the first k of a row are in the k lanes whose best are the first
    keys = ct.full((TILE_M, TILE_N), NOTHING, ct.int32)
    places = ct.zeros((TILE_M, TILE_N), ct.int32)
    for j in range(begin, end):
        tx = ct.load(X, (i, j), (TILE_M, TILE_N), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
        key = ct.where(lane < X.shape[1] - ct.int64(j) * TILE_N, _key(tx, LARGEST), NOTHING)
        better = key > keys
        keys = ct.where(better, key, keys)
        places = ct.where(better, (j - begin) * TILE_N + lane, places)

    # The best of all lanes, again and again; the next one of its lane takes its place
    slot = ct.arange(TILE_K, dtype=ct.int32)[None, :]
    found = ct.full((TILE_M, TILE_K), NOTHING, ct.int32)
    at = ct.zeros((TILE_M, TILE_K), ct.int32)
    for rank in range(k):
        top, place = _first(keys, places)
        found = ct.where(slot == rank, top, found)
        at = ct.where(slot == rank, place, at)
        if TILE_S == 1:
            keys = ct.where(places == place, NOTHING, keys)
        else:
            row = ct.int64(i) * TILE_M + ct.arange(TILE_M, dtype=ct.int32)[:, None]
            others = ct.arange(TILE_S, dtype=ct.int32)[None, :] * TILE_N + place % TILE_N
            key = _key(ct.gather(X, (row, start + others)), LARGEST)
            inside = (others < (end - begin) * TILE_N) & (start + others < X.shape[1])
            later = (key < top) | ((key == top) & (others > place))
            next_key, next_place = _first(ct.where(inside & later, key, NOTHING), others)
            keys = ct.where(lane == place % TILE_N, next_key, keys)
            places = ct.where(lane == place % TILE_N, next_place, places)

    value = _element(found, LARGEST).astype(Value.dtype).reshape((TILE_M, 1, TILE_K))
    index = (start + at).reshape((TILE_M, 1, TILE_K))
    ct.store(Value, (i, split, 0), value, allow_tma=False)
    ct.store(Index, (i, split, 0), index, allow_tma=False)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.lru_cache(maxsize=4096)
def _plan(m, n):
    """Choose (grid, tile, most tiles of a split) for rows (M, N)."""
    tile_n = min(_power_of_two(n), TILE_N)
    tiles = ct.cdiv(n, tile_n)
    tile_m = 1
    while tile_m < m and (2 * tile_m * tile_n <= BLOCK or ct.cdiv(m, tile_m) > MAX_BLOCKS):
        tile_m *= 2
    blocks = ct.cdiv(m, tile_m)
    splits = max(min(BLOCKS // blocks, tiles // CHUNKS_PER_SPLIT), 1)
    return (blocks, splits), (tile_m, tile_n), _power_of_two(ct.cdiv(tiles, splits))


def _choose(x, k, largest, value, index):
    """Write the first `k` of rows of `x` (M, N) to `value`, and where they are to `index`, both (M, k)."""
    grid, tile, most = _plan(*x.shape)
    split = grid[1] > 1
    pair = [t.new_empty((x.shape[0], grid[1], k)) if split else t[:, None] for t in (value, index)]
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        arguments = (x, *pair, k, largest, *tile, most, _power_of_two(k))
        ct.launch(stream, grid, _topk_kernel, arguments)
    if split:  # the first of the first of all splits
        values, indices = (t.flatten(1) for t in pair)
        position = torch.empty_like(index)
        _choose(values, k, largest, value, position)
        torch.gather(indices, 1, position, out=index)


def _own(out, x):
    """`out`, or a tensor of its own where `out` is strided or may overlap `x`."""
    shared = out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    return out if out.is_contiguous() and not shared else torch.empty(out.shape, dtype=out.dtype, device=out.device)


@register_impl("topk", backend="cutile")
def topk(
    x: torch.Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The k largest or smallest elements of rows along one dimension, and where they are."""
    if kwargs:
        raise TypeError(f"topk got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    if not isinstance(dim, int):
        raise TypeError(f"dim is {dim!r}; it must be an int")
    if not -x.ndim <= dim < x.ndim:
        raise ValueError(f"dim is {dim}; it must name one of the {x.ndim} dimensions of x")
    if not isinstance(k, int):
        raise TypeError(f"k is {k!r}; it must be an int")
    if not 0 <= k <= min(x.shape[dim], MOST):
        raise ValueError(f"k is {k}; it must be at most {MOST}, and {x.shape[dim]} elements are there to choose from")
    for name, flag in (("largest", largest), ("sorted", sorted)):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} is {flag!r}; it must be a bool")
    shape = list(x.shape)
    shape[dim] = k
    if out is None:
        out = tuple(torch.empty(shape, dtype=dtype, device=x.device) for dtype in (x.dtype, torch.int64))
    if len(out) != 2:
        raise ValueError(f"out has {len(out)} tensors; it must have two, values and indices")
    for name, tensor, dtype in zip(("values", "indices"), out, (x.dtype, torch.int64), strict=True):
        if list(tensor.shape) != shape or tensor.dtype != dtype or tensor.device != x.device:
            found = f"{tuple(tensor.shape)} of {tensor.dtype} on {tensor.device}"
            raise ValueError(f"out has {name} {found}; they must be {tuple(shape)} of {dtype} on {x.device}")
    if math.prod(shape) == 0:
        return out
    rows, *moved = (t.movedim(dim, -1) for t in (x, *out))
    results = [_own(tensor, x) for tensor in moved]
    _choose(rows.reshape(-1, rows.shape[-1]), k, largest, *(result.view(-1, k) for result in results))
    for tensor, result in zip(moved, results, strict=True):
        if result is not tensor:
            tensor.copy_(result)
    return out
