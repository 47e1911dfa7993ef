"""cuTile backend of group_norm."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstFloat = ct.Constant[float]
ConstBool = ct.Constant[bool]

BLOCK = 4096  # elements of a tile
PIECE = 128  # positions side by side from which on a tile has one row
SHORT = 256  # elements, less than which are a short piece of memory
WHOLE = 16  # tiles of a row, at most, that one block normalizes alone
BLOCKS = 1024  # that sum, at least, where the input is large enough
PARTS = 128  # of one sum, at most
SUMS = 2048  # of parts that a block adds up at once
COLUMNS = 8  # of such sums, where they are those of channels: as many as memory reads in one piece
HINTS_SUMS = {"occupancy": ct.ByTarget(sm_90=3, default=2), "num_worker_warps": 8}
HINTS_ROWS = {"occupancy": 2, "num_worker_warps": 8}
HINTS_MOMENTS = {"occupancy": ct.ByTarget(sm_90=4, default=2), "num_worker_warps": 8}
HINTS = {"occupancy": 8, "num_worker_warps": 8}
HINTS_BACKWARD = {"occupancy": 4, "num_worker_warps": 8}
# Of rows whose gradients one block computes alone: bytes of a tile, elements at most, and how many there must be
ALONE_BYTES, ALONE, MANY = 2**14, 2**18, 64
HINTS_ALONE = {"occupancy": 2, "num_worker_warps": 8}


def _tile(A, index, tile):
    """Tile of A; zero outside."""
    return ct.load(A, index, tile, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)


def _load(A, index, tile):
    """Tile of A as fp32; zero outside."""
    return _tile(A, index, tile).astype(ct.float32)


def _inside(A, axis, i, TILE: ConstInt):
    """How many of the elements of tile `i` along an axis of A lie inside of it."""
    return ct.int32(ct.minimum(A.shape[axis] - ct.int64(i) * TILE, TILE))


def _moments(X, r, begin, end, TILE_R: ConstInt, TILE_B: ConstInt, TILE_S: ConstInt):
    """Over the tiles from `begin` to `end` of rows of X (R, B, S): elements, their mean, and the squares around it."""
    steps = ct.int32(ct.cdiv(X.shape[2], TILE_S))
    flat = (TILE_R, TILE_B * TILE_S)
    row, column = ct.arange(TILE_B, dtype=ct.int32)[:, None], ct.arange(TILE_S, dtype=ct.int32)[None, :]

    # Sums around the mean of the first tile, near enough to that of all that no digits cancel
    b, s = begin // steps, begin % steps
    tx = _tile(X, (r, b, s), (TILE_R, TILE_B, TILE_S))
    pivot = ct.sum(tx.astype(ct.float32).reshape(flat), 1, keepdims=True)
    pivot = pivot / (_inside(X, 1, b, TILE_B) * _inside(X, 2, s, TILE_S))
    count = 0.0
    total = ct.zeros(flat, ct.float32)
    square = ct.zeros(flat, ct.float32)
    for i in range(begin, end):
        b, s = i // steps, i % steps
        inside_b, inside_s = _inside(X, 1, b, TILE_B), _inside(X, 2, s, TILE_S)
        inside = ((row < inside_b) & (column < inside_s)).reshape((TILE_B * TILE_S,))
        centered = ct.where(inside, tx.astype(ct.float32).reshape(flat) - pivot, 0.0)
        # The next tile is on its way meanwhile
        ahead = ct.minimum(i + 1, end - 1)
        tx = _tile(X, (r, ahead // steps, ahead % steps), (TILE_R, TILE_B, TILE_S))
        count = count + inside_b * inside_s
        total = total + centered
        square = square + centered * centered
    shift = ct.sum(total, 1, keepdims=True) / count
    square = ct.sum(square, 1, keepdims=True) - count * shift * shift
    return count, pivot + shift, square


@ct.kernel(**HINTS_ROWS)
def _group_norm_rows_kernel(
    X: ct.IndexedWithInt64,
    Y: ct.IndexedWithInt64,
    W: ct.IndexedWithInt64,
    B: ct.IndexedWithInt64,
    Mean: ct.IndexedWithInt64,
    Var: ct.IndexedWithInt64,
    EPS: ConstFloat,
    HAS_W: ConstBool,
    HAS_B: ConstBool,
    KEEP: ConstBool,
    GROUPS: ConstInt,
    TILE_R: ConstInt,
    TILE_B: ConstInt,
    TILE_S: ConstInt,
):
    """Normalize whole rows of X (R, B, S)."""
    r = ct.bid(0)
    tile = (TILE_R, TILE_B, TILE_S)
    steps = ct.int32(ct.cdiv(X.shape[2], TILE_S))
    tiles = ct.int32(ct.cdiv(X.shape[1], TILE_B)) * steps
    count, mean, square = _moments(X, r, 0, tiles, TILE_R, TILE_B, TILE_S)
    if KEEP:
        ct.store(Mean, (r,), mean.reshape((TILE_R,)), allow_tma=False)
        ct.store(Var, (r,), (square / count).reshape((TILE_R,)), allow_tma=False)
    mean = mean[:, :, None]
    rstd = ct.rsqrt(square / count + EPS)[:, :, None]
    row = (r * TILE_R + ct.arange(TILE_R, dtype=ct.int32))[:, None, None]
    for i in range(tiles):
        index = (r, i // steps, i % steps)
        member = (i // steps * TILE_B + ct.arange(TILE_B, dtype=ct.int32))[None, :, None]
        channel = row % GROUPS * ct.int32(X.shape[1]) + member
        ty = (_load(X, index, tile) - mean) * rstd
        if HAS_W:
            ty = ty * ct.gather(W, channel).astype(ct.float32)
        if HAS_B:
            ty = ty + ct.gather(B, channel).astype(ct.float32)
        ct.store(Y, index, ty.astype(Y.dtype), allow_tma=False)


@ct.kernel(**HINTS_MOMENTS)
def _group_norm_moments_kernel(
    X: ct.IndexedWithInt64, Moments, chunks: int, TILE_R: ConstInt, TILE_B: ConstInt, TILE_S: ConstInt
):
    """Over a part of each row of X (R, B, S): elements, their mean, and the squares around it (3, R, parts)."""
    rows = ct.int32(ct.cdiv(X.shape[0], TILE_R))
    tiles = ct.int32(ct.cdiv(X.shape[1], TILE_B)) * ct.int32(ct.cdiv(X.shape[2], TILE_S))
    r, part = ct.bid(0) % rows, ct.bid(0) // rows
    end = ct.minimum((part + 1) * chunks, tiles)
    count, mean, square = _moments(X, r, part * chunks, end, TILE_R, TILE_B, TILE_S)
    ct.store(Moments, (0, r, part), ct.full((1, TILE_R, 1), count, ct.float32), allow_tma=False)
    ct.store(Moments, (1, r, part), mean[None], allow_tma=False)
    ct.store(Moments, (2, r, part), square[None], allow_tma=False)


def _tile_of(A, block, GROUP: ConstInt, TILE_N: ConstInt, TILE_C: ConstInt, TILE_S: ConstInt):
    """Index of a tile of A (N, C, S); its channels (1, C, 1); which statistics they have (N, C, 1)."""
    steps = ct.int32(ct.cdiv(A.shape[2], TILE_S))
    blocks = ct.int32(ct.cdiv(A.shape[1], TILE_C))
    s, c, n = block % steps, block // steps % blocks, block // steps // blocks
    channel = (c * TILE_C + ct.arange(TILE_C, dtype=ct.int32))[None, :, None]
    sample = (n * TILE_N + ct.arange(TILE_N, dtype=ct.int32))[:, None, None]
    return (n, c, s), channel, sample * (ct.int32(A.shape[1]) // GROUP) + channel // GROUP


@ct.kernel(**HINTS)
def _group_norm_apply_kernel(
    X: ct.IndexedWithInt64,
    Y: ct.IndexedWithInt64,
    W,
    B,
    Moments,
    Mean,
    Var,
    EPS: ConstFloat,
    HAS_W: ConstBool,
    HAS_B: ConstBool,
    KEEP: ConstBool,
    GROUP: ConstInt,
    TILE_P: ConstInt,
    TILE_N: ConstInt,
    TILE_C: ConstInt,
    TILE_S: ConstInt,
):
    """Normalize a tile of X (N, C, S) by the moments of parts of its rows (3, R, parts)."""
    # Backwards: what the sums read last is still in the cache
    block = ct.num_blocks(0) - 1 - ct.bid(0)
    index, channel, row = _tile_of(X, block, GROUP, TILE_N, TILE_C, TILE_S)
    tx = _tile(X, index, (TILE_N, TILE_C, TILE_S))
    part = ct.arange(TILE_P, dtype=ct.int32)[None, None, :]
    counts = ct.gather(Moments, (0, row, part)).astype(ct.float32)
    means = ct.gather(Moments, (1, row, part)).astype(ct.float32)
    count = ct.sum(counts, 2, keepdims=True)
    mean = ct.sum(counts * means, 2, keepdims=True) / count
    shift = means - mean
    squares = ct.gather(Moments, (2, row, part)).astype(ct.float32)
    square = ct.sum(squares + counts * shift * shift, 2, keepdims=True)
    if KEEP and index[2] == 0:
        first = (channel % GROUP == 0) & (channel < ct.int32(X.shape[1]))
        ct.scatter(Mean, row, mean, mask=first)
        ct.scatter(Var, row, square / count, mask=first)
    scale = ct.rsqrt(square / count + EPS)
    if HAS_W:
        scale = scale * ct.gather(W, channel).astype(ct.float32)
    ty = (tx.astype(ct.float32) - mean) * scale
    if HAS_B:
        ty = ty + ct.gather(B, channel).astype(ct.float32)
    ct.store(Y, index, ty.astype(Y.dtype), allow_tma=False)


@ct.kernel(**HINTS_SUMS)
def _group_norm_sums_kernel(
    dY: ct.IndexedWithInt64,
    X: ct.IndexedWithInt64,
    Mean,
    Var,
    Sums: ct.IndexedWithInt64,
    TileSums: ct.IndexedWithInt64,
    chunks: int,
    EPS: ConstFloat,
    GROUP: ConstInt,
    TILE_N: ConstInt,
    TILE_C: ConstInt,
    TILE_S: ConstInt,
):
    """Sums of dY times the normalized X, and of dY, over parts of the positions; TileSums: and a tile's samples."""
    tile = (TILE_N, TILE_C, TILE_S)
    parts = ct.int32(TileSums.shape[1])
    part = ct.bid(0) % parts
    steps = ct.int32(ct.cdiv(X.shape[2], TILE_S))
    (n, c, _), _, row = _tile_of(X, ct.bid(0) // parts * steps, GROUP, TILE_N, TILE_C, TILE_S)
    mean = ct.gather(Mean, row)
    tdw = ct.zeros(tile, ct.float32)
    tdb = ct.zeros(tile, ct.float32)
    for s in range(part * chunks, ct.minimum((part + 1) * chunks, steps)):
        tdy = _load(dY, (n, c, s), tile)
        tdw = tdw + tdy * (_load(X, (n, c, s), tile) - mean)
        tdb = tdb + tdy
    # Where there is no such sample its variance is one, not zero, so that it adds zeros even without EPS
    tdw = ct.sum(tdw, 2, keepdims=True) * ct.rsqrt(ct.gather(Var, row, padding_value=1.0) + EPS)
    tdb = ct.sum(tdb, 2, keepdims=True)
    ct.store(Sums, (0, part, n, c), tdw.reshape((1, 1, TILE_N, TILE_C)), allow_tma=False)
    ct.store(Sums, (1, part, n, c), tdb.reshape((1, 1, TILE_N, TILE_C)), allow_tma=False)
    if TILE_N > 1:
        ct.store(TileSums, (0, part, n, c), ct.sum(tdw, 0).reshape((1, 1, 1, TILE_C)), allow_tma=False)
        ct.store(TileSums, (1, part, n, c), ct.sum(tdb, 0).reshape((1, 1, 1, TILE_C)), allow_tma=False)


def _channel_totals(Columns, c, dW, dB, HAS_W: ConstBool, HAS_B: ConstBool, TILE_K: ConstInt, TILE_C: ConstInt):
    """Totals (2, TILE_C) of Columns (2, K, C), which are the gradients of weight and bias."""
    total = ct.zeros((2, TILE_K, TILE_C), ct.float32)
    for k in range(ct.int32(ct.cdiv(Columns.shape[1], TILE_K))):
        total = total + _load(Columns, (0, k, c), (2, TILE_K, TILE_C))
    total = ct.sum(total, 1)
    if HAS_W:
        tdw = ct.extract(total, (0, 0), (1, TILE_C)).reshape((TILE_C,))
        ct.store(dW, (c,), tdw.astype(dW.dtype), allow_tma=False)
    if HAS_B:
        tdb = ct.extract(total, (1, 0), (1, TILE_C)).reshape((TILE_C,))
        ct.store(dB, (c,), tdb.astype(dB.dtype), allow_tma=False)
    return total


@ct.kernel
def _group_norm_totals_kernel(
    Rows: ct.IndexedWithInt64,
    Columns: ct.IndexedWithInt64,
    W,
    Totals: ct.IndexedWithInt64,
    dW,
    dB,
    scale: float,
    blocks: int,
    HAS_W: ConstBool,
    HAS_B: ConstBool,
    GROUP: ConstInt,
    TILE_P: ConstInt,
    TILE_R: ConstInt,
    TILE_G: ConstInt,
    TILE_K: ConstInt,
    TILE_C: ConstInt,
):
    """Add up Rows (2, parts, R, GROUP), weighted, into Totals (2, R), and in further blocks Columns (2, K, C)."""
    r = ct.bid(0)
    if r < blocks:
        row = (r * TILE_R + ct.arange(TILE_R, dtype=ct.int32))[:, None]
        total = ct.zeros((2, TILE_P, TILE_R, TILE_G), ct.float32)
        for g in range(ct.cdiv(GROUP, TILE_G)):
            sums = _load(Rows, (0, 0, r, g), (2, TILE_P, TILE_R, TILE_G))
            if HAS_W:
                member = (g * TILE_G + ct.arange(TILE_G, dtype=ct.int32))[None, :]
                channel = row % (ct.int32(W.shape[0]) // GROUP) * GROUP + member
                sums = sums * ct.gather(W, channel, mask=member < GROUP).astype(ct.float32)[None, None]
            total = total + sums
        ct.store(Totals, (0, r), ct.sum(total, (1, 3)) * scale, allow_tma=False)
    else:
        _channel_totals(Columns, r - blocks, dW, dB, HAS_W, HAS_B, TILE_K, TILE_C)


@ct.kernel(**HINTS_BACKWARD)
def _group_norm_backward_kernel(
    dY: ct.IndexedWithInt64,
    X: ct.IndexedWithInt64,
    dX: ct.IndexedWithInt64,
    Mean,
    Var,
    W,
    Totals,
    EPS: ConstFloat,
    HAS_W: ConstBool,
    GROUP: ConstInt,
    TILE_N: ConstInt,
    TILE_C: ConstInt,
    TILE_S: ConstInt,
):
    """Gradient of a tile of X (N, C, S), less what a change of the statistics takes away."""
    tile = (TILE_N, TILE_C, TILE_S)
    block = ct.num_blocks(0) - 1 - ct.bid(0)
    index, channel, row = _tile_of(X, block, GROUP, TILE_N, TILE_C, TILE_S)
    rstd = ct.rsqrt(ct.gather(Var, row) + EPS)
    tdx = _load(dY, index, tile)
    if HAS_W:
        tdx = tdx * ct.gather(W, channel).astype(ct.float32)
    tx = (_load(X, index, tile) - ct.gather(Mean, row)) * rstd
    tdx = (tdx - ct.gather(Totals, (1, row)) - tx * ct.gather(Totals, (0, row))) * rstd
    ct.store(dX, index, tdx.astype(dX.dtype), allow_tma=False)


def _pair(A, B, r, i, steps, tile):
    """Tile `i` of a row of A and of B (R, B, S), of which `steps` are side by side; the nearest if there is none."""
    i = ct.minimum(ct.maximum(i, 0), ct.int32(ct.cdiv(A.shape[1], tile[1])) * steps - 1)
    place = (r, i // steps, i % steps)
    return _tile(A, place, tile), _tile(B, place, tile)


def _added(total, t):
    """A sum for each eight neighbours of a tile: it takes an eighth of the registers."""
    return total + ct.sum(t.reshape((*total.shape, 8)), 3)


@ct.kernel(**HINTS_ALONE)
def _group_norm_backward_rows_kernel(
    dY: ct.IndexedWithInt64,
    X: ct.IndexedWithInt64,
    dX: ct.IndexedWithInt64,
    Mean,
    Var,
    W,
    Sums: ct.IndexedWithInt64,
    scale: float,
    EPS: ConstFloat,
    HAS_W: ConstBool,
    GROUPS: ConstInt,
    TILE_B: ConstInt,
    TILE_S: ConstInt,
):
    """Gradient of a whole row of X (R, B, S); Sums (2, R, B) of dY times the normalized X, and of dY."""
    r, tile, narrow = ct.bid(0), (1, TILE_B, TILE_S), (1, TILE_B, TILE_S // 8)
    steps = ct.int32(ct.cdiv(X.shape[2], TILE_S))
    tiles = ct.int32(ct.cdiv(X.shape[1], TILE_B)) * steps
    mean = _load(Mean, (r,), (1,)).reshape((1, 1, 1))
    rstd = ct.rsqrt(_load(Var, (r,), (1,)).reshape((1, 1, 1)) + EPS)
    tdy, tx = _pair(dY, X, r, 0, steps, tile)

    def slope_of(b):
        if not HAS_W:
            return rstd
        member = (b * TILE_B + ct.arange(TILE_B, dtype=ct.int32))[None, :, None]
        group = ct.int32(X.shape[1])
        return ct.gather(W, r % GROUPS * group + member, mask=member < group).astype(ct.float32) * rstd

    tilt = ct.zeros((1, TILE_B, 1), ct.float32)
    shift = ct.zeros((1, TILE_B, 1), ct.float32)
    for b in range(tiles // steps):
        tdw = ct.zeros(narrow, ct.float32)
        tdb = ct.zeros(narrow, ct.float32)
        for s in range(steps):
            product = tdy.astype(ct.float32) * (tx.astype(ct.float32) - mean)
            tdw, tdb = _added(tdw, product), _added(tdb, tdy.astype(ct.float32))
            # The next tiles are on their way meanwhile
            tdy, tx = _pair(dY, X, r, b * steps + s + 1, steps, tile)
        tdw = ct.sum(tdw, 2, keepdims=True) * rstd
        tdb = ct.sum(tdb, 2, keepdims=True)
        ct.store(Sums, (0, r, b), tdw.reshape((1, 1, TILE_B)), allow_tma=False)
        ct.store(Sums, (1, r, b), tdb.reshape((1, 1, TILE_B)), allow_tma=False)
        slope = slope_of(b)
        tilt = tilt + tdw * slope
        shift = shift + tdb * slope
    # What a change of the statistics takes away
    tilt = ct.sum(tilt, 1, keepdims=True) * rstd * scale
    shift = ct.sum(shift, 1, keepdims=True) * scale
    tdy, tx = _pair(dY, X, r, tiles - 1, steps, tile)
    for i in range(tiles):  # backwards: what was read last is still in the cache
        place = (r, (tiles - 1 - i) // steps, (tiles - 1 - i) % steps)
        tdx = tdy.astype(ct.float32) * slope_of(place[1]) - (tx.astype(ct.float32) - mean) * tilt - shift
        tdy, tx = _pair(dY, X, r, tiles - 2 - i, steps, tile)
        ct.store(dX, place, tdx.astype(dX.dtype), allow_tma=False)


@ct.kernel
def _group_norm_columns_kernel(
    Columns: ct.IndexedWithInt64, dW, dB, HAS_W: ConstBool, HAS_B: ConstBool, TILE_K: ConstInt, TILE_C: ConstInt
):
    """Add up Columns (2, K, C): the gradients of weight and bias."""
    _channel_totals(Columns, ct.bid(0), dW, dB, HAS_W, HAS_B, TILE_K, TILE_C)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


def _positions(t):
    """View (N, C, S) of a tensor (N, C, ...)."""
    return t if t.ndim == 3 else t.reshape(*t.shape[:2], -1)


def _rows(t, group):
    """View (R, GROUP, S) of a tensor (N, C, ...)."""
    return t.reshape(t.shape[0] * t.shape[1] // group, group, -1)


@functools.lru_cache(maxsize=4096)
def _tiled(shape, strides, most=(BLOCK, BLOCK, BLOCK), block=BLOCK):
    """Powers of two for three axes, as much of memory in one piece as a block takes, and how many tiles of them."""
    tile = [1, 1, 1]
    order = sorted(range(3), key=lambda d: (strides[d], -d))
    # Pieces of memory that begin anyhow, as images of 7 x 7 do, take more registers, and the more so if they are short
    if any(stride % 8 for stride in strides if stride > 1):
        block //= 2 if shape[order[0]] >= SHORT else 4
    for d in order:
        tile[d] = min(_power_of_two(shape[d]), most[d], block // math.prod(tile))
    return tuple(tile), [ct.cdiv(n, size) for n, size in zip(shape, tile, strict=True)]


def _row_tiles(shape, strides):
    """The same for rows (R, B, S), one to a tile where its positions are a long piece of memory: more blocks."""
    return _tiled(shape, strides, (1 if strides[2] == 1 and shape[2] >= PIECE else BLOCK, BLOCK, BLOCK))


def _split(blocks, tiles):
    """How many tiles of a sum a block adds up, and how many parts this makes: more where there are few blocks."""
    chunks = ct.cdiv(tiles, min(PARTS, max(1, BLOCKS // blocks)))
    return chunks, ct.cdiv(tiles, chunks)


def _moments_of_parts(stream, rows):
    """Elements of parts of rows (R, B, S), their mean, and the squares around it."""
    tile, (blocks, *tiles) = _row_tiles(rows.shape, rows.stride())
    chunks, parts = _split(blocks, math.prod(tiles))
    moments = torch.empty((3, len(rows), parts), dtype=torch.float32, device=rows.device)
    kernel = _group_norm_moments_kernel
    ct.launch(stream, (blocks * parts,), kernel, (rows, moments, chunks, *tile))
    return moments


def _apply(stream, x, y, moments, weight, bias, eps, group, keep):
    """Write x, normalized by these moments of parts, to y; the mean and biased variance where they are to be kept."""
    a, b = _positions(x), _positions(y)
    _, r, parts = moments.shape
    tile_p = _power_of_two(parts)
    tile, tiles = _tiled(a.shape, a.stride(), (1, SUMS // tile_p, BLOCK))
    mean = var = moments  # stand in for what is not there
    if keep:
        mean, var = (torch.empty(r, dtype=torch.float32, device=x.device) for _ in range(2))
    w, v = (moments if t is None else t for t in (weight, bias))
    arguments = (a, b, w, v, moments, mean, var, eps)
    constants = (weight is not None, bias is not None, keep, group, tile_p, *tile)
    kernel = _group_norm_apply_kernel
    ct.launch(stream, (math.prod(tiles),), kernel, (*arguments, *constants))
    return mean, var


def _forward(x, weight, bias, eps, group, keep=False, out=None):
    """The result, with the statistics of each row where they are to be kept."""
    # Through a tensor of its own where `out` is strided or may overlap an input
    tensors = [t for t in (x, weight, bias) if t is not None and out is not None]
    storages = [t.untyped_storage().data_ptr() for t in tensors]
    direct = out is not None and out.is_contiguous() and out.untyped_storage().data_ptr() not in storages
    y = out if direct else torch.empty_like(x, memory_format=torch.contiguous_format)
    mean, var = (x, x)
    if x.numel():
        with torch.cuda.device(x.device):
            stream = torch.cuda.current_stream(x.device)
            rows = _rows(x, group)
            tile, (blocks, *tiles) = _row_tiles(rows.shape, rows.stride())
            if math.prod(tiles) <= WHOLE:
                if keep:
                    mean, var = (torch.empty(len(rows), dtype=torch.float32, device=x.device) for _ in range(2))
                w, v = (x if t is None else t for t in (weight, bias))  # stands in for one that is not there
                arguments = (rows, _rows(y, group), w, v, mean, var, eps)
                constants = (weight is not None, bias is not None, keep, x.shape[1] // group, *tile)
                kernel = _group_norm_rows_kernel
                ct.launch(stream, (blocks,), kernel, (*arguments, *constants))
            else:
                moments = _moments_of_parts(stream, rows)
                mean, var = _apply(stream, x, y, moments, weight, bias, eps, group, keep)
    return y if out is None or direct else out.copy_(y), mean, var


def _channel_sums(stream, dy, x, mean, var, eps, group):
    """Sums of dy times the normalized x, and of dy, over parts of the positions: (2, parts, N, C).

    The second result has them over the samples of each tile, too: (2, K, C).
    """
    tile, (samples, channels, steps) = _tiled(x.shape, x.stride())
    blocks = samples * channels
    chunks, parts = _split(blocks, steps)
    sums = torch.empty((2, parts, *x.shape[:2]), dtype=torch.float32, device=x.device)
    tile_sums = sums if tile[0] == 1 else sums.new_empty((2, parts, samples, x.shape[1]))
    arguments = (dy, x, mean, var, sums, tile_sums, chunks, eps, group, *tile)
    ct.launch(stream, (blocks * parts,), _group_norm_sums_kernel, arguments)
    return sums, tile_sums.view(2, -1, x.shape[1])


def _totals(stream, sums, columns, weight, dw, db, group, scale):
    """Slope and offset of each row of statistics; fills `dw` and `db`."""
    c = min(_power_of_two(columns.shape[2]), COLUMNS)
    k = min(_power_of_two(columns.shape[1]), SUMS // c)
    blocks = ct.cdiv(columns.shape[2], c)
    has_w, has_b = weight is not None, db is not None
    rows = sums.view(*sums.shape[:2], -1, group)
    p = _power_of_two(rows.shape[1])
    g = min(_power_of_two(group), SUMS // p)
    r = min(_power_of_two(rows.shape[2]), SUMS // (p * g))
    first = ct.cdiv(rows.shape[2], r)
    blocks = first + blocks if has_w or has_b else first
    totals = rows.new_empty((2, rows.shape[2]))
    w, dw, db = (totals if t is None else t for t in (weight, dw, db))  # stand in for those that are not there
    arguments = (rows, columns, w, totals, dw, db, scale, first, has_w, has_b, group, p, r, g, k, c)
    ct.launch(stream, (blocks,), _group_norm_totals_kernel, arguments)
    return totals


@functools.lru_cache(maxsize=4096)
def _alone(shape, strides, itemsize):
    """Tile (B, S) of rows whose gradients a block each computes; None where rows are few, long or not in one piece."""
    r, b, s = shape
    if r < MANY or b * s > ALONE or s < 32 or strides[2] != 1:
        return None
    block = ALONE_BYTES // itemsize
    return _tiled(shape, strides, (1, block, block), block)[0][1:]


def _columns(stream, sums, dw, db):
    """Fill `dw` and `db` from sums (2, N, C) of samples."""
    has_w, has_b = dw is not None, db is not None
    if has_w or has_b:
        _, n, c = sums.shape
        tile_c = min(_power_of_two(c), COLUMNS)
        tile_k = min(_power_of_two(n), SUMS // tile_c)
        dw, db = (sums if t is None else t for t in (dw, db))  # stand in for those that are not there
        arguments = (sums, dw, db, has_w, has_b, tile_k, tile_c)
        ct.launch(stream, (ct.cdiv(c, tile_c),), _group_norm_columns_kernel, arguments)


class _GroupNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps, group):
        y, mean, var = _forward(x, weight, bias, eps, group, keep=True)
        ctx.save_for_backward(x, weight, bias, mean, var)
        ctx.constants = (eps, group)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        x, weight, bias, mean, var = ctx.saved_tensors
        eps, group = ctx.constants
        dx = torch.empty_like(x, memory_format=torch.contiguous_format)
        empty = torch.empty_like if x.numel() else torch.zeros_like
        dw, db = (None if t is None else empty(t) for t in (weight, bias))
        if x.numel():
            tile = None
            if x.is_contiguous():  # else rows would have to be copied
                rows = _rows(x, group)
                tile = _alone(rows.shape, rows.stride(), x.element_size())
            if tile is not None:
                sums = torch.empty((2, *rows.shape[:2]), dtype=torch.float32, device=x.device)
                w = mean if weight is None else weight
                arguments = (_rows(dy, group), rows, _rows(dx, group), mean, var, w, sums)
                constants = (1 / (group * rows.shape[2]), eps, weight is not None, x.shape[1] // group, *tile)
                with torch.cuda.device(x.device):
                    stream = torch.cuda.current_stream(x.device)
                    kernel = _group_norm_backward_rows_kernel
                    ct.launch(stream, (len(rows),), kernel, (*arguments, *constants))
                    _columns(stream, sums.view(2, *x.shape[:2]), dw, db)
                return dx, dw, db, None, None
            a, tdy, tdx = (_positions(t) for t in (x, dy, dx))
            with torch.cuda.device(x.device):
                stream = torch.cuda.current_stream(x.device)
                sums, columns = _channel_sums(stream, tdy, a, mean, var, eps, group)
                totals = _totals(stream, sums, columns, weight, dw, db, group, 1 / (group * a.shape[2]))
                w = mean if weight is None else weight
                tile, tiles = _tiled(a.shape, a.stride())
                arguments = (tdy, a, tdx, mean, var, w, totals, eps, weight is not None, group, *tile)
                kernel = _group_norm_backward_kernel
                ct.launch(stream, (math.prod(tiles),), kernel, arguments)
        return dx, dw, db, None, None


def _check_vector(name, value, x):
    """Refuse what has not one element for each channel of `x`."""
    if not isinstance(value, torch.Tensor) or value.dtype not in _DTYPES:
        found = getattr(value, "dtype", type(value).__name__)
        raise TypeError(f"{name} is {found}; it must be a tensor of float32, float16, bfloat16, or None")
    if value.shape != x.shape[1:2] or value.device != x.device:
        found = f"{tuple(value.shape)} on {value.device}"
        raise ValueError(f"{name} is {found}; it must be {tuple(x.shape[1:2])} on {x.device}, one for each channel")


@register_impl("group_norm", backend="cutile")
def group_norm(
    x: torch.Tensor,
    num_groups: int,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Group normalization of (N, C, ...), over the channels of a group and all positions of a sample."""
    if kwargs:
        raise TypeError(f"group_norm got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    if x.ndim < 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have at least two, samples and channels")
    if not isinstance(num_groups, int):
        raise TypeError(f"num_groups is {num_groups!r}; it must be an int")
    if num_groups < 1 or x.shape[1] % num_groups:
        raise ValueError(f"num_groups is {num_groups}; it must divide the {x.shape[1]} channels of x")
    if weight is not None:
        _check_vector("weight", weight, x)
    if bias is not None:
        _check_vector("bias", bias, x)
    if not isinstance(eps, int | float):
        raise TypeError(f"eps is {eps!r}; it must be a number")
    if out is not None and (out.shape != x.shape or out.dtype != x.dtype or out.device != x.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {tuple(x.shape)} of {x.dtype} on {x.device}")
    differentiable = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias))
    if differentiable and out is not None:
        raise ValueError("out is given and an input requires a gradient; use torch.no_grad(), or leave out away")
    arguments = (x, weight, bias, float(eps), x.shape[1] // num_groups)
    if differentiable:
        return _GroupNorm.apply(*arguments)
    return _forward(*arguments, out=out)[0]
