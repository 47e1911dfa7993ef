"""cuTile backend of cross_entropy."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstFloat = ct.Constant[float]
ConstBool = ct.Constant[bool]

LOG2E = math.log2(math.e)
# Of a row that is held in registers, by whether it is read 16 bytes at a time: what holds it; bytes of it at most, of
# all rows of a block, and of a tile. A warp that has a row to itself waits for no other one
HELD = {
    True: (("warp", 8192, 32768, 512), ("block", 16384, 16384, 2048)),
    False: (("block", 512, 2048, 512), ("block", 8192, 8192, 2048)),
}
# Of a longer row, by whether it is read 16 bytes at a time: bytes of a tile, tiles under way at once, and neighbours
# that share a maximum, which one thread reads
LONG = {True: (4096, 4, 8), False: (1024, 4, 1)}
TILE_SUM = 8192  # sums of blocks at once, where one block adds all up
HINTS = {  # by what holds a row; measured on sm_90
    "warp": {"occupancy": ct.ByTarget(sm_90=5, default=4), "num_worker_warps": 4},
    "block": {"occupancy": ct.ByTarget(sm_90=8, default=4), "num_worker_warps": 4},
    "long": {"occupancy": ct.ByTarget(sm_90=6, default=4), "num_worker_warps": 4},
}
HINTS_SUM = {"occupancy": 1, "num_worker_warps": 8}
TILE_BACKWARD = 1024  # elements of a row in a tile, at most
TILES_BACKWARD = 2  # of a block, at most
HINTS_BACKWARD = {"occupancy": ct.ByTarget(sm_90=12, default=8), "num_worker_warps": 4}


def _exp(t):
    return ct.exp2(t * LOG2E, flush_to_zero=True)


def _exp_below(tx, base):
    """Exponentials of a tile less a maximum; `base` is LOG2E times this: one instruction scales and subtracts."""
    return ct.exp2(tx.astype(ct.float32) * LOG2E - base, flush_to_zero=True)


def _gather(X, place, inside, EXACT):
    """Elements of X; -inf outside, unless all are inside."""
    if EXACT:
        return ct.gather(X, place, check_bounds=False)
    return ct.gather(X, place, mask=inside, padding_value=-math.inf, check_bounds=False)


def _store(Loss, Lse, Count, rows, target, logit, lse, mean, ignore_index, SMOOTHING, REDUCE):
    """Store what becomes of the rows of a block: their losses, or the sum of these and how many rows count."""
    loss = lse - logit
    if SMOOTHING > 0:
        loss = (1.0 - SMOOTHING) * loss + SMOOTHING * (lse - mean)
    counts = ct.where(rows < Lse.shape[0], target != ignore_index, False)
    loss = ct.where(counts, loss, 0.0)
    i = ct.bid(0)
    if REDUCE:
        ct.store(Loss, (i,), ct.sum(loss))
        ct.store(Count, (i,), ct.sum(counts.astype(ct.float32)))
    else:
        ct.store(Loss, (i,), loss.astype(Loss.dtype), allow_tma=False)
    ct.store(Lse, (i,), lse, allow_tma=False)


@ct.kernel
def _cross_entropy_short_kernel(
    X: ct.IndexedWithInt64,
    Target,
    Loss,
    Lse,
    Count,
    ignore_index: int,
    SMOOTHING: ConstFloat,
    REDUCE: ConstBool,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILES: ConstInt,
    GROUP: ConstInt,
    EXACT: ConstBool,
):
    """Losses of TILE_M rows of X (M, N), held in registers, and the logarithms of their sums of exponentials."""
    n = X.shape[1]
    rows = ct.bid(0) * TILE_M + ct.arange(TILE_M, dtype=ct.int32)
    target = ct.gather(Target, rows)  # before the row, so that its logit is there in time
    columns, insides = (), ()
    for j in ct.static_iter(range(TILES)):  # all known before the first load; a group is inside or outside as a whole
        first = (j * TILE_N + GROUP * ct.arange(TILE_N // GROUP, dtype=ct.int32))[None, :, None]
        columns += (first + ct.arange(GROUP, dtype=ct.int32),)
        insides += ((rows < Lse.shape[0])[:, None, None] & (first < n),)
    txs = ()
    for j in ct.static_iter(range(TILES)):
        tx = _gather(X, (rows[:, None, None], columns[j]), insides[j], EXACT)
        txs += (tx.reshape((TILE_M, TILE_N)),)
    logit = ct.gather(X, (rows, target), padding_value=math.nan).astype(ct.float32)

    most = txs[0]
    for tx in ct.static_iter(txs[1:]):
        most = ct.maximum(most, tx)
    top = ct.max(most, 1, keepdims=True).astype(ct.float32)
    base = top * LOG2E  # a NaN, an inf or a row of nothing but -inf makes the sum NaN
    total = _exp_below(txs[0], base)
    for tx in ct.static_iter(txs[1:]):
        total = total + _exp_below(tx, base)
    lse = (top + ct.log(ct.sum(total, 1, keepdims=True))).reshape((TILE_M,))
    plain = ct.zeros((TILE_M, TILE_N), ct.float32)
    if SMOOTHING > 0:
        for j in ct.static_iter(range(TILES)):
            plain = plain + ct.where(columns[j].reshape((1, TILE_N)) < n, txs[j].astype(ct.float32), 0.0)
    _store(Loss, Lse, Count, rows, target, logit, lse, ct.sum(plain, 1) / n, ignore_index, SMOOTHING, REDUCE)


def _chunk(X, i, start, TILE_N, TILES, GROUP):
    """Tiles of row i, all of whose elements are inside; a line for each group."""
    txs = ()
    for k in ct.static_iter(range(TILES)):
        place = start + (k * TILE_N + ct.arange(TILE_N, dtype=ct.int32))
        tx = ct.gather(X, (i, place), check_bounds=False)  # of whole chunks only
        txs += (tx.reshape((TILE_N // GROUP, GROUP)),)
    return txs


def _last_chunk(X, i, start, end, fill, TILE_N, TILES, GROUP):
    """The same with `fill` in the place of groups from `end` on."""
    firsts, insides = (), ()
    for k in ct.static_iter(range(TILES)):  # all known before the first load
        firsts += ((k * TILE_N + GROUP * ct.arange(TILE_N // GROUP, dtype=ct.int32))[:, None],)
        insides += (firsts[k] < end - start,)
    txs = ()
    for k in ct.static_iter(range(TILES)):
        place = start + (firsts[k] + ct.arange(GROUP, dtype=ct.int32))
        txs += (ct.gather(X, (i, place), mask=insides[k], padding_value=fill, check_bounds=False),)
    return txs


def _fold(txs, top, total):
    """Largest value of each group with those of more tiles, and each lane's sum of exponentials relative to it."""
    most = txs[0]
    for tx in ct.static_iter(txs[1:]):
        most = ct.maximum(most, tx)
    new = ct.maximum(top, ct.max(most, 1, keepdims=True).astype(ct.float32))
    base = ct.where(new == -math.inf, 0.0, new) * LOG2E  # -inf - -inf would be NaN, and a later tile may be finite
    total = total * _exp_below(top, base)
    for tx in ct.static_iter(txs):
        total = total + _exp_below(tx, base)
    return new, total


def _sum(txs, plain):
    for tx in ct.static_iter(txs):
        plain = plain + tx.astype(ct.float32)
    return plain


@ct.kernel
def _cross_entropy_kernel(
    X: ct.IndexedWithInt64,
    Target,
    Loss,
    Lse,
    Count,
    ignore_index: int,
    SMOOTHING: ConstFloat,
    REDUCE: ConstBool,
    TILE_N: ConstInt,
    TILES: ConstInt,
    GROUP: ConstInt,
    REST: ConstBool,
):
    """Loss of a row of X (M, N), and the logarithm of its sum of exponentials: an online pass, lane by lane."""
    i = ct.bid(0)
    n = X.shape[1]
    target = ct.load(Target, (i,), (1,), allow_tma=False)  # not waited for before the end
    end = n - n % GROUP
    if REST:  # of the row after its last whole group
        column = end + ct.arange(GROUP, dtype=ct.int32)
        rest = ct.gather(X, (i, column), mask=column < n, padding_value=-math.inf, check_bounds=False)
        rest = rest.astype(ct.float32)
    top = ct.full((TILE_N // GROUP, 1), -math.inf, ct.float32)
    total = ct.zeros((TILE_N // GROUP, GROUP), ct.float32)
    plain = ct.zeros((TILE_N // GROUP, GROUP), ct.float32)
    whole = ct.int32(n // (TILE_N * TILES))
    for chunk in range(whole):
        txs = _chunk(X, i, ct.int64(chunk) * (TILE_N * TILES), TILE_N, TILES, GROUP)
        top, total = _fold(txs, top, total)
        if SMOOTHING > 0:
            plain = _sum(txs, plain)
    start = ct.int64(whole) * (TILE_N * TILES)
    if start < end:
        top, total = _fold(_last_chunk(X, i, start, end, -math.inf, TILE_N, TILES, GROUP), top, total)
        if SMOOTHING > 0:
            plain = _sum(_last_chunk(X, i, start, end, 0, TILE_N, TILES, GROUP), plain)

    # The lanes meet once; a NaN, an inf or a row of nothing but -inf makes the sum NaN
    highest = ct.max(top)
    if REST:
        highest = ct.maximum(highest, ct.max(rest))
    total, plain = ct.sum(total * _exp(top - highest)), ct.sum(plain)
    if REST:
        total, plain = total + ct.sum(_exp(rest - highest)), plain + ct.sum(ct.where(column < n, rest, 0.0))
    lse = (highest + ct.log(total)).reshape((1,))
    rows = i + ct.arange(1, dtype=ct.int32)
    logit = ct.gather(X, (rows, target), padding_value=math.nan).astype(ct.float32)
    _store(Loss, Lse, Count, rows, target, logit, lse, plain / n, ignore_index, SMOOTHING, REDUCE)


@ct.kernel(**HINTS_SUM)
def _cross_entropy_sum_kernel(Sums, Counts, Loss, Count, MEAN: ConstBool, TILE: ConstInt):
    """Sum of the losses of all blocks, or their mean over the rows that count, and how many these are; in one block."""
    total = ct.zeros((TILE,), ct.float32)
    count = ct.zeros((TILE,), ct.float32)
    for j in range(ct.cdiv(Sums.shape[0], TILE)):
        total = total + ct.load(Sums, (j,), (TILE,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
        count = count + ct.load(Counts, (j,), (TILE,), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
    loss, rows = ct.sum(total), ct.sum(count)
    if MEAN:
        loss = loss / rows
    ct.store(Loss, (0,), loss.astype(Loss.dtype))
    ct.store(Count, (0,), rows)


@ct.kernel(**HINTS_BACKWARD)
def _cross_entropy_backward_kernel(
    dLoss,
    Count,
    X: ct.IndexedWithInt64,
    Target,
    Lse,
    dX: ct.IndexedWithInt64,
    ignore_index: int,
    SMOOTHING: ConstFloat,
    MEAN: ConstBool,
    TILE: ConstInt,
    TILES: ConstInt,
    EXACT: ConstBool,
):
    """Gradient of a part of a row of X (M, N): its softmax less the target, times the gradient of its loss."""
    n = X.shape[1]
    parts = ct.int32(ct.cdiv(n, TILE * TILES))
    i, start = ct.bid(0) // parts, ct.int64(ct.bid(0) % parts) * (TILE * TILES)
    target = ct.load(Target, (i,), ())
    scale = ct.load(dLoss, (i,), ()).astype(ct.float32)
    base = ct.load(Lse, (i,), ()) * LOG2E
    lanes, insides = (), ()
    for k in ct.static_iter(range(TILES)):
        lanes += (k * TILE + ct.arange(TILE, dtype=ct.int32),)
        insides += (lanes[k] < n - start,)
    txs = ()
    for k in ct.static_iter(range(TILES)):  # all under way before the first is needed
        txs += (_gather(X, (i, start + lanes[k]), insides[k], EXACT),)
    if MEAN:
        scale = scale / ct.load(Count, (0,), ())
    place = target - start
    place = ct.where((place >= 0) & (place < TILE * TILES), place, -1).astype(ct.int32)  # compared in one instruction
    for k in ct.static_iter(range(TILES)):
        tdx = _exp_below(txs[k], base)
        tdx = ct.where(lanes[k] == place, tdx - (1.0 - SMOOTHING), tdx)
        if SMOOTHING > 0:
            tdx = tdx - SMOOTHING / n
        tdx = ct.where(target == ignore_index, 0.0, tdx * scale).astype(dX.dtype)
        if EXACT:
            ct.scatter(dX, (i, start + lanes[k]), tdx, check_bounds=False)
        else:
            ct.scatter(dX, (i, start + lanes[k]), tdx, mask=insides[k], check_bounds=False)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.cache
def _kernel(holder):
    """Kernel with the hints for what holds a row."""
    kernel = _cross_entropy_short_kernel
    if holder == "long":
        kernel = _cross_entropy_kernel
    return kernel.replace_hints(**HINTS[holder])


def _plan(x):
    """Choose (kernel, rows of a block, constants) for rows (M, N)."""
    (m, n), itemsize = x.shape, x.element_size()
    aligned = x.data_ptr() % 16 == 0 and x.stride(0) * itemsize % 16 == 0 and x.stride(1) == 1
    group = 16 // itemsize if aligned and n * itemsize % 16 == 0 else 1
    held = next((held for held in HELD[group > 1] if n * itemsize <= held[1]), None)
    if held is None:
        length, tiles, group = LONG[aligned]
        return _kernel("long"), 1, (length // itemsize, tiles, group, n % group > 0)
    holder, _, block, tile = held
    tile_n = min(_power_of_two(n), tile // itemsize)
    tiles = ct.cdiv(n, tile_n)
    tile_m = min(_power_of_two(m), block // (itemsize * tile_n * _power_of_two(tiles)))
    return _kernel(holder), tile_m, (tile_m, tile_n, tiles, group, m % tile_m == 0 and n % tile_n == 0)


def _forward(logits, target, ignore_index, smoothing, reduction, out=None):
    """The loss, and what its gradient needs: logarithms of the sums of exponentials, and how many rows count."""
    result = torch.empty(target.shape if reduction == "none" else (), dtype=logits.dtype, device=logits.device)
    x, classes = logits.reshape(-1, logits.shape[-1]), target.reshape(-1)
    m = x.shape[0]
    kernel, tile_m, constants = _plan(x)
    blocks = ct.cdiv(m, tile_m)
    lse, sums, counts = torch.empty(m + 2 * blocks, dtype=torch.float32, device=x.device).split((m, blocks, blocks))
    count = torch.empty(1, dtype=torch.float32, device=x.device)
    reduced = reduction != "none"
    losses = sums if reduced else result.view(-1)
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        if m:
            arguments = (x, classes, losses, lse, counts, ignore_index, smoothing, reduced, *constants)
            ct.launch(stream, (blocks,), kernel, arguments)
        if reduced:
            arguments = (sums, counts, result.view(1), count, reduction == "mean", TILE_SUM)
            ct.launch(stream, (1,), _cross_entropy_sum_kernel, arguments)
    return result if out is None else out.copy_(result), lse, count


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, ignore_index, smoothing, reduction):
        loss, lse, count = _forward(logits, target, ignore_index, smoothing, reduction)
        ctx.save_for_backward(logits, target, lse, count)
        ctx.constants = (ignore_index, smoothing, reduction == "mean")
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dloss):
        logits, target, lse, count = ctx.saved_tensors
        x, classes = logits.reshape(-1, logits.shape[-1]), target.reshape(-1)
        dx = torch.empty_like(x, memory_format=torch.contiguous_format)
        if x.shape[0]:
            dlosses = dloss.expand(target.shape).reshape(-1)
            tile = min(_power_of_two(x.shape[1]), TILE_BACKWARD)
            tiles = min(ct.cdiv(x.shape[1], tile), TILES_BACKWARD)
            blocks, exact = x.shape[0] * ct.cdiv(x.shape[1], tile * tiles), x.shape[1] % (tile * tiles) == 0
            with torch.cuda.device(x.device):
                stream = torch.cuda.current_stream(x.device)
                arguments = (dlosses, count, x, classes, lse, dx, *ctx.constants, tile, tiles, exact)
                ct.launch(stream, (blocks,), _cross_entropy_backward_kernel, arguments)
        return dx.view(logits.shape), None, None, None, None


@register_impl("cross_entropy", backend="cutile")
def cross_entropy(
    logits: torch.Tensor,
    target: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Cross entropy of rows of logits, the last dimension, and their target classes, in one read of the logits."""
    if kwargs:
        raise TypeError(f"cross_entropy got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(logits, torch.Tensor) or logits.dtype not in _DTYPES:
        found = getattr(logits, "dtype", type(logits).__name__)
        raise TypeError(f"logits is {found}; it must be a tensor of float32, float16, bfloat16")
    if not logits.is_cuda:
        raise ValueError(f"logits is on {logits.device}; it must be on a CUDA device")
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(f"logits has shape {tuple(logits.shape)}; its last dimension must have at least one class")
    if not isinstance(target, torch.Tensor) or target.dtype not in (torch.int32, torch.int64):
        found = getattr(target, "dtype", type(target).__name__)
        raise TypeError(f"target is {found}; it must be a tensor of int32 or int64")
    if target.shape != logits.shape[:-1] or target.device != logits.device:
        found = f"{tuple(target.shape)} on {target.device}"
        raise ValueError(f"target is {found}; it must be {tuple(logits.shape[:-1])} on {logits.device}, like logits")
    if not isinstance(ignore_index, int):
        raise TypeError(f"ignore_index is {ignore_index!r}; it must be an int")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing is {label_smoothing!r}; it must lie between 0 and 1")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction is {reduction!r}; it must be mean, sum or none")
    shape = target.shape if reduction == "none" else torch.Size(())
    if out is not None and (out.shape != shape or out.dtype != logits.dtype or out.device != logits.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {tuple(shape)} of {logits.dtype} on {logits.device}")
    smoothing = float(label_smoothing)
    if logits.requires_grad and torch.is_grad_enabled():
        if out is not None:
            raise ValueError("out is given and logits requires a gradient; leave out away, or use torch.no_grad()")
        return _CrossEntropy.apply(logits, target, ignore_index, smoothing, reduction)
    return _forward(logits, target, ignore_index, smoothing, reduction, out)[0]
