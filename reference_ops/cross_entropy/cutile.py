"""cuTile backend of cross_entropy."""

import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstFloat = ct.Constant[float]
ConstBool = ct.Constant[bool]

LOG2E = math.log2(math.e)
SHORT = 8192  # elements of a row, at most, for which blocks that run at once count more than tiles under way in each
TILES = {True: (1024, 2), False: (2048, 4)}  # by whether a row is short: lanes, and tiles of them under way
TILE_SUM = 4096  # losses at once, where one block adds all up
HINTS = {  # likewise; measured on sm_90
    True: {"occupancy": ct.ByTarget(sm_90=12, default=8), "num_worker_warps": 4},
    False: {"occupancy": ct.ByTarget(sm_90=6, default=4), "num_worker_warps": 4},
}
TILE_BACKWARD = 8192
HINTS_BACKWARD = {"occupancy": 4, "num_worker_warps": 8}


def _load(X, index, tile):
    """Tile of X as fp32; outside -inf, which neither wins nor counts."""
    return ct.load(X, index, tile, padding_mode=ct.PaddingMode.NEG_INF, allow_tma=False).astype(ct.float32)


def _exp(t):
    return ct.exp2(t * LOG2E, flush_to_zero=True)


def _fold(txs, top, total):
    """Largest value of each lane with those of more tiles, and the sum of exponentials relative to it."""
    new = top
    for tx in ct.static_iter(txs):
        new = ct.maximum(new, tx)
    base = ct.where(new == -math.inf, 0.0, new)  # -inf - -inf would be NaN, and a later tile may be finite
    total = total * _exp(top - base)
    for tx in ct.static_iter(txs):
        total = total + _exp(tx - base)
    return new, total


@ct.kernel
def _cross_entropy_kernel(
    X: ct.IndexedWithInt64,
    Target,
    Loss,
    Lse,
    ignore_index: int,
    SMOOTHING: ConstFloat,
    TILE_N: ConstInt,
    TILES: ConstInt,
):
    """Loss of a row of X (M, N), and the logarithm of its sum of exponentials: an online pass, lane by lane."""
    i = ct.bid(0)
    n = X.shape[1]
    target = ct.load(Target, (i,), ())
    logit = ct.gather(X, (i, target), padding_value=math.nan).astype(ct.float32)
    top = ct.full((1, TILE_N), -math.inf, ct.float32)
    total = ct.zeros((1, TILE_N), ct.float32)
    plain = ct.zeros((1, TILE_N), ct.float32)
    whole = ct.int32(n // (TILE_N * TILES))
    for chunk in range(whole):
        txs = ()
        for k in ct.static_iter(range(TILES)):
            txs += (_load(X, (i, chunk * TILES + k), (1, TILE_N)),)
        top, total = _fold(txs, top, total)
        if SMOOTHING > 0:
            for tx in ct.static_iter(txs):
                plain = plain + tx
    for j in range(whole * TILES, ct.int32(ct.cdiv(n, TILE_N))):
        tx = _load(X, (i, j), (1, TILE_N))
        top, total = _fold((tx,), top, total)
        if SMOOTHING > 0:
            inside = ct.arange(TILE_N, dtype=ct.int64)[None, :] < n - ct.int64(j) * TILE_N
            plain = plain + ct.where(inside, tx, 0.0)

    # The lanes meet once; a NaN, an inf or a row of nothing but -inf makes the sum NaN
    highest = ct.max(top)
    lse = highest + ct.log(ct.sum(total * _exp(top - highest)))
    loss = lse - logit
    if SMOOTHING > 0:
        loss = (1.0 - SMOOTHING) * loss + SMOOTHING * (lse - ct.sum(plain) / n)
    ct.store(Loss, (i,), ct.where(target == ignore_index, 0.0, loss).astype(Loss.dtype))
    ct.store(Lse, (i,), lse)


@ct.kernel
def _cross_entropy_sum_kernel(Rows, Target, Loss, Count, ignore_index: int, MEAN: ConstBool, TILE: ConstInt):
    """Sum of all losses, or their mean over the rows that count, and how many these are; in one block."""
    total = ct.zeros((TILE,), ct.float32)
    count = ct.zeros((TILE,), ct.float32)
    for j in range(ct.cdiv(Rows.shape[0], TILE)):
        inside = ct.arange(TILE, dtype=ct.int32) < Rows.shape[0] - j * TILE
        counts = ct.load(Target, (j,), (TILE,), padding_mode=ct.PaddingMode.ZERO) != ignore_index
        total = total + ct.load(Rows, (j,), (TILE,), padding_mode=ct.PaddingMode.ZERO)
        count = count + ct.where(inside, counts.astype(ct.float32), 0.0)
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
):
    """Gradient of a part of a row of X (M, N): its softmax less the target, times the gradient of its loss."""
    n = X.shape[1]
    parts = ct.int32(ct.cdiv(n, TILE))
    i, j = ct.bid(0) // parts, ct.bid(0) % parts
    target = ct.load(Target, (i,), ())
    scale = ct.load(dLoss, (i,), ()).astype(ct.float32)
    if MEAN:
        scale = scale / ct.load(Count, (0,), ())
    hit = ct.arange(TILE, dtype=ct.int64)[None, :] == target - ct.int64(j) * TILE
    tdx = _exp(_load(X, (i, j), (1, TILE)) - ct.load(Lse, (i,), ())) - ct.where(hit, 1.0 - SMOOTHING, 0.0)
    tdx = (tdx - SMOOTHING / n) * scale
    ct.store(dX, (i, j), ct.where(target == ignore_index, 0.0, tdx).astype(dX.dtype), allow_tma=False)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_KERNELS = {
    True: _cross_entropy_kernel.replace_hints(**HINTS[True]),
    False: _cross_entropy_kernel.replace_hints(**HINTS[False]),
}


def _forward(logits, target, ignore_index, smoothing, reduction, out=None):
    """The loss, and what its gradient needs: logarithms of the sums of exponentials, and how many rows count."""
    result = torch.empty(target.shape if reduction == "none" else (), dtype=logits.dtype, device=logits.device)
    x, classes = logits.reshape(-1, logits.shape[-1]), target.reshape(-1)
    rows, lse = torch.empty((2, x.shape[0]), dtype=torch.float32, device=x.device)
    count = torch.empty(1, dtype=torch.float32, device=x.device)
    losses = result.view(-1) if reduction == "none" else rows
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        if x.shape[0]:
            short = x.shape[1] <= SHORT
            lanes, tiles = TILES[short]
            lanes = min(1 << (x.shape[1] - 1).bit_length(), lanes)
            arguments = (x, classes, losses, lse, ignore_index, smoothing, lanes, tiles)
            ct.launch(stream, (x.shape[0],), _KERNELS[short], arguments)
        if reduction != "none":
            arguments = (rows, classes, result.view(1), count, ignore_index, reduction == "mean", TILE_SUM)
            ct.launch(stream, (1,), _cross_entropy_sum_kernel, arguments)
    return result if out is None else out.copy_(result), lse, count


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, ignore_index, smoothing, reduction):
        loss, lse, count = _forward(logits, target, ignore_index, smoothing, reduction)
        ctx.save_for_backward(logits, target, lse, count)
        ctx.constants = (ignore_index, smoothing, reduction == "mean", TILE_BACKWARD)
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dloss):
        logits, target, lse, count = ctx.saved_tensors
        x, classes = logits.reshape(-1, logits.shape[-1]), target.reshape(-1)
        dx = torch.empty_like(x, memory_format=torch.contiguous_format)
        if x.shape[0]:
            dlosses = dloss.expand(target.shape).reshape(-1)
            blocks = x.shape[0] * ct.cdiv(x.shape[1], TILE_BACKWARD)
            with torch.cuda.device(x.device):
                stream = torch.cuda.current_stream(x.device)
                arguments = (dlosses, count, x, classes, lse, dx, *ctx.constants)
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
