"""cuTile backend of add_rms_norm."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstFloat = ct.Constant[float]
ConstBool = ct.Constant[bool]

ROW = 16384  # elements of a row that a block holds in registers, as fp32; a longer row is looped over
TILE_N = 2048  # elements of one of the tiles that make up such a row: 16 bytes of bf16 for each of 256 threads
BLOCK = 4096  # elements of several short rows together, and of a tile of a row that is looped over
PAIRED = (4, 6, 8)  # such tiles of a row: these numbers are taken two at a time for the gradients
UNIT = 128  # bytes that are neighbours in what is loaded then at once; they must divide the row
HELD_BACKWARD = 49152  # words of 32 bits that a block holds for the gradients: of a row, its gradient, and the sums
HELD_WITH_WEIGHT = 36864  # such words, beside which there is room for the weight; beyond, it is loaded with each row
NEIGHBOURS = 8  # halves that are loaded by one thread, and added up at once
TILE_COLUMNS = 128  # width of a tile that walks down longer rows
BLOCKS = 1024  # that sum the gradients of weight and bias then
SUMS = 2048  # of rows that a block adds up at once
COLUMNS = 32  # of such sums
MAX_BLOCKS = 2**24 - 1  # along one axis of a grid
HINTS = {  # by the elements that a block holds, at most; measured on sm_90
    4096: {"occupancy": 3, "num_worker_warps": 4},
    12288: {"occupancy": 3, "num_worker_warps": 8},
    16384: {"occupancy": 2, "num_worker_warps": 8},
}
HINTS_BACKWARD = {  # by the words that a block holds, at most; measured on sm_90
    12288: {"occupancy": 2, "num_worker_warps": 8},
    49152: {"occupancy": 1, "num_worker_warps": 8},
}


def _wide(t):
    """A tile in the dtype that is computed in."""
    return t.astype(ct.static_eval(ct.float64 if t.dtype == ct.float64 else ct.float32))


def _load(A, index, tile):
    """Tile of A in the dtype that is computed in; zero outside."""
    # Plain loads: all tiles of a row are under way at once, and need no shared memory
    return _wide(ct.load(A, index, tile, padding_mode=ct.PaddingMode.ZERO, allow_tma=False))


def _added(arrays, index, tile):
    """Sum of the tiles of one or two arrays, rounded to their dtype."""
    t = _load(arrays[0], index, tile)
    for A in ct.static_iter(arrays[1:]):
        t = (t + _load(A, index, tile)).astype(A.dtype).astype(t.dtype)
    return t


def _dot(ts, us):
    """Sum of products of tiles along rows: lane by lane first, so that the lanes meet once."""
    total = _wide(ts[0]) * _wide(us[0])
    for t, u in ct.static_iter(zip(ts[1:], us[1:], strict=True)):
        total = total + _wide(t) * _wide(u)
    return ct.sum(total, 1, keepdims=True)


def _inside(N, TILE_N: ConstInt, TILES: ConstInt):
    """Which elements of the last tile of a row belong to it."""
    return ct.arange(TILE_N, dtype=ct.int32) < N - (TILES - 1) * TILE_N


def _tiles(arrays, i, TILE_M: ConstInt, TILE_N: ConstInt, TILES: ConstInt):
    """Rows as tiles in registers."""
    inside = _inside(arrays[0].shape[1], TILE_N, TILES)
    txs = ()
    for j in ct.static_iter(range(TILES)):
        txs += (_added(arrays, (i, j), (TILE_M, TILE_N)),)
    # Zero already; to say it, with `inside` from before the loads, spares a branch around each of them
    return (*txs[:-1], ct.where(inside, txs[-1], 0.0))


def _statistics(txs, N, EPS: ConstFloat):
    """Reciprocal of the root mean square of rows of N elements."""
    return ct.rsqrt(_dot(txs, txs) / N + EPS)


def _long_rows(arrays, i, EPS: ConstFloat, TILE_M: ConstInt, TILE_N: ConstInt):
    """Reciprocal of the root mean square of rows of any length."""
    square = ct.zeros((TILE_M, TILE_N), ct.static_eval(ct.float64 if arrays[0].dtype == ct.float64 else ct.float32))
    for j in range(ct.int32(ct.cdiv(arrays[0].shape[1], TILE_N))):
        tx = _added(arrays, (i, j), (TILE_M, TILE_N))
        square = square + tx * tx
    return ct.rsqrt(ct.sum(square, 1, keepdims=True) / arrays[0].shape[1] + EPS)


def _store(Y, index, tx, W, B, HAS_W: ConstBool, HAS_B: ConstBool):
    """Store a normalized tile, times the weight, plus the bias."""
    _, j = index
    if HAS_W:
        tx = tx * _load(W, (j,), tx.shape[1:])
    if HAS_B:
        tx = tx + _load(B, (j,), tx.shape[1:])
    ct.store(Y, index, tx.astype(Y.dtype), allow_tma=False)


@ct.kernel
def _add_rms_norm_kernel(
    X,
    R,
    Y,
    S,
    W,
    B,
    Statistics,
    EPS: ConstFloat,
    HAS_W: ConstBool,
    HAS_B: ConstBool,
    SAVE: ConstBool,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILES: ConstInt,
):
    """Rows of X plus R (M, N), held in registers: read once, written once."""
    i = ct.bid(0)
    txs = _tiles((X, R), i, TILE_M, TILE_N, TILES)
    rstd = _statistics(txs, X.shape[1], EPS)
    if SAVE:
        ct.store(Statistics, (i, 0), rstd, allow_tma=False)
    for j in ct.static_iter(range(TILES)):
        ct.store(S, (i, j), txs[j].astype(S.dtype), allow_tma=False)
        _store(Y, (i, j), txs[j] * rstd, W, B, HAS_W, HAS_B)


@ct.kernel
def _add_rms_norm_long_kernel(
    X: ct.IndexedWithInt64,
    R: ct.IndexedWithInt64,
    Y: ct.IndexedWithInt64,
    S: ct.IndexedWithInt64,
    W: ct.IndexedWithInt64,
    B: ct.IndexedWithInt64,
    Statistics: ct.IndexedWithInt64,
    EPS: ConstFloat,
    HAS_W: ConstBool,
    HAS_B: ConstBool,
    SAVE: ConstBool,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
):
    """Rows of X plus R (M, N) of any length: a pass that sums, and one that writes."""
    i = ct.bid(0)
    rstd = _long_rows((X, R), i, EPS, TILE_M, TILE_N)
    if SAVE:
        ct.store(Statistics, (i, 0), rstd, allow_tma=False)
    for j in range(ct.int32(ct.cdiv(X.shape[1], TILE_N))):
        tx = _added((X, R), (i, j), (TILE_M, TILE_N))
        ct.store(S, (i, j), tx.astype(S.dtype), allow_tma=False)
        _store(Y, (i, j), tx * rstd, W, B, HAS_W, HAS_B)


def _held(A, i, TILE_M: ConstInt, TILE_N: ConstInt, TILES: ConstInt):
    """Rows of A (M, N), or (M, N / unit, unit), as tiles in its dtype."""
    # Through shared memory, where other warps load the next rows while these compute
    ts = ()
    for j in ct.static_iter(range(TILES)):
        if A.ndim == 3:  # a whole tile by one instruction of theirs
            unit = ct.static_eval(8 * UNIT // A.dtype.bitwidth)
            tile = (TILE_M, TILE_N // unit, unit)
            t = ct.load(A, (i, j, 0), tile, padding_mode=ct.PaddingMode.ZERO).reshape((TILE_M, TILE_N))
        else:
            t = ct.load(A, (i, j), (TILE_M, TILE_N), padding_mode=ct.PaddingMode.ZERO)
        ts += (t,)
    return ts


def _weight(W, index, tile, HAS_W: ConstBool):
    """Tile of the weight, a line for each row, in its dtype; zero outside, or 1 if there is none."""
    if HAS_W:
        return ct.load(W, index, tile, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    return ct.ones(tile, ct.float32)


def _add(total, t, groups):
    """Add a tile; where `groups` are of several neighbours, what these come to."""
    return total + (t if groups[2] == 1 else ct.sum(t.reshape(groups), 2))


def _saved(Statistics, i, TILE_M: ConstInt):
    """Reciprocal of the root mean square of rows, as saved."""
    return _load(Statistics, (i, 0), (TILE_M, 1))


@ct.kernel
def _add_rms_norm_backward_kernel(
    dY,
    dS,
    X,
    dX,
    W,
    Statistics,
    dW,
    dB,
    HAS_W: ConstBool,
    HOLD_W: ConstBool,
    SUM_W: ConstBool,
    SUM_B: ConstBool,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILES: ConstInt,
):
    """Gradient of rows of the sum X, in registers; a block's part of those of weight and bias, a line of dW and dB."""
    tile = (TILE_M, TILE_N)
    HALVES = X.dtype in (ct.float16, ct.bfloat16)
    GROUP = ct.static_eval(min(NEIGHBOURS, TILE_N) if HALVES and X.ndim == 3 else 1)
    groups = (TILE_M, TILE_N // GROUP, GROUP)
    tws, tdws, tdbs = (), (), ()
    for j in ct.static_iter(range(TILES)):
        tws += (_weight(W, (0, j), (1, TILE_N), HAS_W) if HOLD_W else None,)
        tdws += (ct.zeros(tile, dW.dtype),)
        tdbs += (ct.zeros(tile, dB.dtype),)
    rows, part = ct.cdiv(X.shape[0], TILE_M), ct.ones((1, 1), dW.dtype) / dX.shape[1]
    rstd = _saved(Statistics, ct.bid(0), TILE_M)
    for i in range(ct.bid(0), rows, ct.num_blocks(0)):
        txs, tdys = _held(X, i, TILE_M, TILE_N, TILES), _held(dY, i, TILE_M, TILE_N, TILES)
        tdss = _held(dS, i, TILE_M, TILE_N, TILES)
        # On their way while this turn computes; after the last one nobody reads them
        following = ct.minimum(i + ct.num_blocks(0), rows - 1)
        next_rstd = _saved(Statistics, following, TILE_M)

        slope = ct.zeros(groups[:2], dW.dtype)
        normalized, tgs, sums_w, sums_b = (), (), (), ()
        for j in ct.static_iter(range(TILES)):
            tx, tdy = _wide(txs[j]) * rstd, _wide(tdys[j])
            tg = tdy * _wide(tws[j] if HOLD_W else _weight(W, (i, j), tile, HAS_W))
            slope = _add(slope, tg * tx, groups)
            normalized, tgs = (*normalized, tx), (*tgs, tg if HOLD_W or HALVES else tdy)
            sums_w += (tdws[j] + tdy * tx if SUM_W else tdws[j],)
            sums_b += (tdbs[j] + tdy if SUM_B else tdbs[j],)
        tdws, tdbs = sums_w, sums_b

        # What a change of the statistics takes away; where the weight is not held, there is no register for `part`
        share = part * rstd if HOLD_W else rstd / dX.shape[1]
        slope = ct.sum(slope, 1, keepdims=True) * share
        for j in ct.static_iter(range(TILES)):
            tg = tgs[j] if HOLD_W or HALVES else tgs[j] * _weight(W, (i, j), tile, HAS_W)
            tdx = tg * rstd - normalized[j] * slope + _wide(tdss[j])
            ct.store(dX, (i, j), tdx.astype(dX.dtype), allow_tma=False)
        rstd = next_rstd
    for j in ct.static_iter(range(TILES)):
        if SUM_W:
            ct.store(dW, (ct.bid(0), j), ct.sum(tdws[j], 0, keepdims=True), allow_tma=False)
        if SUM_B:
            ct.store(dB, (ct.bid(0), j), ct.sum(tdbs[j], 0, keepdims=True), allow_tma=False)


def _total(Lines, j, TILE_M: ConstInt, TILE_N: ConstInt):
    """Sum of columns of Lines (blocks, N)."""
    tile = (TILE_M, TILE_N)
    total = ct.zeros(tile, Lines.dtype)
    for i in range(ct.cdiv(Lines.shape[0], TILE_M)):
        total = total + ct.load(Lines, (i, j), tile, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    return ct.sum(_wide(total), 0)


@ct.kernel
def _add_rms_norm_totals_kernel(
    LinesW, LinesB, dW, dB, SUM_W: ConstBool, SUM_B: ConstBool, TILE_M: ConstInt, TILE_N: ConstInt
):
    """Gradients of weight and bias from the lines of all blocks."""
    j = ct.bid(0)
    if SUM_W:
        ct.store(dW, (j,), _total(LinesW, j, TILE_M, TILE_N).astype(dW.dtype), allow_tma=False)
    if SUM_B:
        ct.store(dB, (j,), _total(LinesB, j, TILE_M, TILE_N).astype(dB.dtype), allow_tma=False)


@ct.kernel
def _add_rms_norm_long_backward_kernel(
    dY: ct.IndexedWithInt64,
    dS: ct.IndexedWithInt64,
    X: ct.IndexedWithInt64,
    dX: ct.IndexedWithInt64,
    W: ct.IndexedWithInt64,
    Statistics: ct.IndexedWithInt64,
    HAS_W: ConstBool,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
):
    """Gradient of rows of the sum X, of any length, in two passes."""
    i = ct.bid(0)
    tile = (TILE_M, TILE_N)
    rstd = _saved(Statistics, i, TILE_M)
    slope = ct.zeros(tile, rstd.dtype)
    for j in range(ct.int32(ct.cdiv(X.shape[1], TILE_N))):
        tg = _load(dY, (i, j), tile) * _wide(_weight(W, (i, j), tile, HAS_W))
        slope = slope + tg * _load(X, (i, j), tile)
    slope = ct.sum(slope, 1, keepdims=True) / X.shape[1] * rstd * rstd
    for j in range(ct.int32(ct.cdiv(X.shape[1], TILE_N))):
        tg = _load(dY, (i, j), tile) * _wide(_weight(W, (i, j), tile, HAS_W))
        tdx = (tg - _load(X, (i, j), tile) * slope) * rstd + _load(dS, (i, j), tile)
        ct.store(dX, (i, j), tdx.astype(dX.dtype), allow_tma=False)


@ct.kernel
def _add_rms_norm_weight_backward_kernel(
    dY: ct.IndexedWithInt64,
    X: ct.IndexedWithInt64,
    Statistics: ct.IndexedWithInt64,
    dW: ct.IndexedWithInt64,
    dB: ct.IndexedWithInt64,
    chunks: int,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
):
    """Gradients of weight and bias over `chunks` tiles of rows: one line of dW and dB (splits, N)."""
    columns = ct.int32(ct.cdiv(dW.shape[1], TILE_N))
    j, split = ct.bid(0) % columns, ct.bid(0) // columns
    tdw = ct.zeros((TILE_M, TILE_N), dW.dtype)
    tdb = ct.zeros((TILE_M, TILE_N), dB.dtype)
    for i in range(split * chunks, ct.minimum((split + 1) * chunks, ct.int32(ct.cdiv(X.shape[0], TILE_M)))):
        rstd = _saved(Statistics, i, TILE_M)
        tdy = _load(dY, (i, j), (TILE_M, TILE_N))
        tdw = tdw + tdy * _load(X, (i, j), (TILE_M, TILE_N)) * rstd
        tdb = tdb + tdy
    ct.store(dW, (split, j), ct.sum(tdw, 0, keepdims=True), allow_tma=False)
    ct.store(dB, (split, j), ct.sum(tdb, 0, keepdims=True), allow_tma=False)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.cache
def _hinted(kernel, elements):
    """Kernel with the hints for a block of so many elements."""
    return kernel.replace_hints(**HINTS[next((n for n in HINTS if n >= elements), max(HINTS))])


@functools.lru_cache(maxsize=4096)
def _plan(m, n, most, wide, tile_n=TILE_N):
    """Choose (whether rows are too long for registers, tiles of rows, constants) for rows (M, N)."""
    tile_n = min(_power_of_two(n), tile_n)
    tiles = ct.cdiv(n, tile_n)
    long = wide or tile_n * tiles > most
    if long:
        tile_n, tiles = min(_power_of_two(n), BLOCK), 1
    tile_m = 1
    while tile_m < m and (2 * tile_m * tile_n * tiles <= BLOCK or ct.cdiv(m, tile_m) > MAX_BLOCKS):
        tile_m *= 2
    constants = (tile_m, tile_n) if long else (tile_m, tile_n, tiles)
    return long, ct.cdiv(m, tile_m), constants


def _is_wide(rows):
    """Whether indices into arrays (M, N) need more than 32 bits."""
    return max(*rows[0].shape, *(s for row in rows for s in row.stride())) >= 2**31


def _launch(blocks, kernel, *arguments):
    device = arguments[0].device
    with torch.cuda.device(device):
        ct.launch(torch.cuda.current_stream(device), (blocks,), kernel, arguments)


def _normalize(rows, *arguments):
    """Normalize rows (M, N); the last of the arrays `rows` is the result."""
    x = rows[0]
    words = max(4, x.element_size()) // 4  # fp64 takes twice the registers
    long, blocks, constants = _plan(*x.shape, ROW // words, _is_wide(rows))
    if long:
        held = 4 * BLOCK  # tiles and their sums
        kernel = _hinted(_add_rms_norm_long_kernel, held)
    else:
        held = words * math.prod(constants)
        kernel = _hinted(_add_rms_norm_kernel, held)
    _launch(blocks, kernel, *rows, *arguments, *constants)


def _forward(x, residual, weight, bias, eps, out=None, statistics=None):
    # Through tensors of their own where those of `out` are strided or may overlap an input or each other
    results = out or ()
    tensors = [t for t in (x, residual, weight, bias, *results) if t is not None]
    storages = [t.untyped_storage().data_ptr() for t in tensors]
    direct = results and all(t.is_contiguous() and storages.count(t.untyped_storage().data_ptr()) == 1 for t in results)
    y, s = results if direct else (torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(2))
    if x.numel():
        rows = [t.reshape(-1, x.shape[-1]) for t in (x, residual, y, s)]
        # X stands in for one that is not there
        vectors = [rows[0] if t is None else t for t in (weight, bias, statistics)]
        _normalize(rows, *vectors, float(eps), weight is not None, bias is not None, statistics is not None)
    if out is None:
        return y, s
    if not direct:
        for target, result in zip(out, (y, s), strict=True):
            target.copy_(result)
    return out


def _weight_gradients(dy, x, statistics):
    """Sums over rows, in two steps: every block those of a run of rows, then PyTorch those of all blocks."""
    m, n = x.shape
    tile_n = min(_power_of_two(n), TILE_COLUMNS)
    tile_m = min(_power_of_two(m), BLOCK // tile_n)
    columns, tiles = ct.cdiv(n, tile_n), ct.cdiv(m, tile_m)
    chunks = ct.cdiv(tiles, max(1, BLOCKS // columns))
    splits = ct.cdiv(tiles, chunks)
    sums = torch.empty((2, splits, n), dtype=statistics.dtype, device=x.device)
    arguments = (dy, x, statistics, *sums, chunks, tile_m, tile_n)
    kernel = _add_rms_norm_weight_backward_kernel
    _launch(columns * splits, kernel, *arguments)
    return sums.sum(1)


@functools.cache
def _backward_kernel(device, words):
    """Kernel for blocks that hold so many words, and how many of them a device runs at once."""
    hints = HINTS_BACKWARD[next((most for most in HINTS_BACKWARD if most >= words), max(HINTS_BACKWARD))]
    kernel = _add_rms_norm_backward_kernel
    multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count
    return kernel.replace_hints(**hints), hints["occupancy"] * multiprocessors


def _gradients(rows, weight, bias, statistics, summed):
    """Write the gradient of rows (M, N) to the last of the arrays; return those of weight and bias, if `summed`."""
    dy, x = rows[0], rows[-2]
    wide = statistics.dtype
    words = (2 + summed.count(True)) * wide.itemsize // 4  # for an element of a row
    room = max(words, x.element_size())  # wider elements leave less
    n, unit = x.shape[1], UNIT // x.element_size()
    paired = ct.cdiv(n, TILE_N) in PAIRED and n % unit == 0 and not all(summed)  # both sums leave too few registers
    tile_n = 2 * TILE_N if paired else TILE_N
    long, blocks, constants = _plan(*x.shape, HELD_BACKWARD // room, _is_wide(rows), tile_n)
    w = x if weight is None else weight.expand(x.shape)
    if long:
        kernel = _hinted(_add_rms_norm_long_backward_kernel, ROW)
        _launch(blocks, kernel, *rows, w, statistics, weight is not None, *constants)
        sums = _weight_gradients(dy, x, statistics) if any(summed) else summed
        return [s.to(t.dtype) if wanted else None for t, s, wanted in zip((weight, bias), sums, summed, strict=True)]
    kernel, most = _backward_kernel(x.device, words * math.prod(constants))
    held = room * math.prod(constants) <= HELD_WITH_WEIGHT
    blocks, n = min(blocks, most), x.shape[1]
    if paired:
        rows = [*(t.unflatten(1, (n // unit, unit)) for t in rows[:-1]), rows[-1]]
    lines = [torch.empty((blocks, n), dtype=wide, device=x.device) for _ in range(max(summed.count(True), 1))]
    lines = (lines[0], lines[-1])  # one stands in for that of what is not summed
    dw, db = (torch.empty_like(t) if wanted else None for t, wanted in zip((weight, bias), summed, strict=True))
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        arguments = (*rows, w, statistics, *lines, weight is not None, held, *summed, *constants)
        ct.launch(stream, (blocks,), kernel, arguments)
        if any(summed):
            tile_n = min(_power_of_two(n), COLUMNS)
            tile_m = min(_power_of_two(blocks), SUMS // tile_n)
            arguments = (*lines, w if dw is None else dw, w if db is None else db, *summed, tile_m, tile_n)
            ct.launch(stream, (ct.cdiv(n, tile_n),), _add_rms_norm_totals_kernel, arguments)
    return dw, db


def _statistics_of(x):
    """Room for the root mean square of each row: what the gradients need."""
    rows = x.numel() // max(x.shape[-1], 1)
    return torch.empty((rows, 1), dtype=torch.promote_types(x.dtype, torch.float32), device=x.device)


class _AddRmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, weight, bias, eps):
        statistics = _statistics_of(x)
        y, s = _forward(x, residual, weight, bias, eps, statistics=statistics)
        ctx.save_for_backward(s, weight, bias, statistics)
        return y, s

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy, ds):
        x, weight, bias, statistics = ctx.saved_tensors
        dx = torch.empty_like(x, memory_format=torch.contiguous_format)
        summed = ctx.needs_input_grad[2:4]
        if x.numel():
            rows = [t.reshape(-1, x.shape[-1]) for t in (dy, ds, x, dx)]
            dw, db = _gradients(rows, weight, bias, statistics, summed)
        else:
            dw, db = (torch.zeros_like(t) if wanted else None for t, wanted in zip((weight, bias), summed, strict=True))
        return dx, dx, dw, db, None


def _check_vector(name, value, x):
    """Refuse a weight or bias that is not a vector as long as a row of `x`."""
    if not isinstance(value, torch.Tensor) or value.dtype not in _DTYPES:
        found = getattr(value, "dtype", type(value).__name__)
        raise TypeError(f"{name} is {found}; it must be a tensor of float32, float16, bfloat16, or None")
    if value.shape != x.shape[-1:] or value.device != x.device:
        found = f"{tuple(value.shape)} on {value.device}"
        raise ValueError(f"{name} is {found}; it must be {tuple(x.shape[-1:])} on {x.device}, like a row of x")


def _check_out(out, x):
    """Refuse anything but two tensors like `x`."""
    if len(out) != 2:
        raise ValueError(f"out has {len(out)} tensors; it must have two, for the normalized sum and for the sum")
    for target in out:
        if target.shape != x.shape or target.dtype != x.dtype or target.device != x.device:
            found = f"{tuple(target.shape)} of {target.dtype} on {target.device}"
            raise ValueError(f"out has {found}; it must have two of {tuple(x.shape)} of {x.dtype} on {x.device}")


@register_impl("add_rms_norm", backend="cutile")
def add_rms_norm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-6,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Residual addition, then root mean square normalization of the last dimension of the sum."""
    if kwargs:
        raise TypeError(f"add_rms_norm got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    if x.ndim == 0:
        raise ValueError("x is a scalar; it must have at least one dimension, the rows to normalize")
    if not isinstance(residual, torch.Tensor) or residual.dtype != x.dtype:
        found = getattr(residual, "dtype", type(residual).__name__)
        raise TypeError(f"residual is {found}; it must be a tensor of {x.dtype}, like x")
    if residual.shape != x.shape or residual.device != x.device:
        found = f"{tuple(residual.shape)} on {residual.device}"
        raise ValueError(f"residual is {found}; it must be {tuple(x.shape)} on {x.device}, like x")
    if weight is not None:
        _check_vector("weight", weight, x)
    if bias is not None:
        _check_vector("bias", bias, x)
    if not isinstance(eps, int | float):
        raise TypeError(f"eps is {eps!r}; it must be a number")
    if out is not None:
        _check_out(out, x)
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, residual, weight, bias)):
        if out is not None:
            raise ValueError("out is given and an input requires a gradient; use torch.no_grad(), or leave out away")
        return _AddRmsNorm.apply(x, residual, weight, bias, eps)
    return _forward(x, residual, weight, bias, eps, out)
