"""cuTile backend of linear_cross_entropy."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstFloat = ct.Constant[float]
ConstBool = ct.Constant[bool]

# No logits go through memory: for 8192 rows, 128256 classes and K = 4096 they are 8.6 TFLOP, at 700 TFLOP/s 12 ms;
# to write and read 2.1 GB of bf16 at 4.2 TB/s would add 1 ms, and round them. A tile leaves one number of each row.
LOG2E = math.log2(math.e)
ZERO = ct.PaddingMode.ZERO
GROUP_ROWS = 2048  # rows whose tiles are taken before the next column: what they read of B stays in the L2 cache
TILE_PARTS = (64, 32)  # tiles of classes, and rows, whose parts are put together at once
TILE_SUM = 4096  # losses at once, where one block adds all up
# Classes whose logits are in memory at once, for the gradient. That of the weight is whole for each chunk; of hidden it
# is a sum over chunks, in fp32: to read and write its 8 bytes is by the same rates 3 % of the 49152 FLOP beside it.
CHUNK = 8192


@dataclass(frozen=True)
class _Config:
    """A tile (M, N, K), and how many blocks work on all of them."""

    tile: tuple[int, int, int]
    persistent: bool = False  # one wave of blocks, each of which loads its next tile while it finishes the last
    most_rows: int = 2**31

    def suits(self, multiprocessors, rows, tiles):
        """Whether nearly all multiprocessors are busy with tiles that are at least half full."""
        return self.tile[0] < 2 * rows and tiles / multiprocessors >= (2 if self.persistent else 0.9)


# By bytes of an element and the first major compute capability that they are for; of those that allow as many rows, the
# first that suits is taken, else the last. Chosen by the registers that they need, after what was measured for matmul.
CONFIGS = {
    2: {
        8: (_Config((128, 128, 32)), _Config((64, 64, 32))),
        9: (
            _Config((16, 64, 128), most_rows=16),
            _Config((128, 256, 64), persistent=True),
            _Config((128, 128, 64)),
            _Config((64, 128, 128)),
            _Config((64, 64, 64)),
        ),
        10: (_Config((128, 256, 64), persistent=True), _Config((128, 128, 64)), _Config((64, 64, 64))),
        12: (_Config((128, 128, 64)), _Config((64, 64, 64))),
    },
    4: {8: (_Config((64, 64, 16)),), 9: (_Config((128, 128, 8)), _Config((64, 64, 16)))},
}


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


def _product(A, B, tacc, m, n, TILE_M, TILE_N, TILE_K):
    """Tile (m, n) of A (M, K) @ B (K, N), added to tacc."""
    for k in range(ct.num_tiles(A, 1, (TILE_M, TILE_K))):
        ta = ct.load(A, (m, k), (TILE_M, TILE_K), padding_mode=ZERO)
        tb = ct.load(B, (k, n), (TILE_K, TILE_N), padding_mode=ZERO)
        tacc = ct.mma(ta, tb, tacc)
    return tacc


def _position(tile, tiles_m, tiles_n, group):
    """Row and column of a tile, counted down `group` rows of tiles, then on to the next column."""
    in_group = group * tiles_n
    first = tile // in_group * group
    height = ct.minimum(tiles_m - first, group)
    return first + tile % in_group % height, tile % in_group // height


def _each_tile(compute, rows, columns, TILE_M, TILE_N, PERSISTENT):
    """Compute the block's own tile (m, n), or where PERSISTENT several, one after the other."""
    tiles_m, tiles_n = ct.cdiv(rows, TILE_M), ct.cdiv(columns, TILE_N)

    def at(tile):
        m, n = _position(tile, tiles_m, tiles_n, GROUP_ROWS // TILE_M)
        compute(m, n)

    if PERSISTENT:
        for tile in range(ct.bid(0), tiles_m * tiles_n, ct.num_blocks(0)):
            at(tile)
    else:
        at(ct.bid(0))


def _place(target, first, columns):
    """Where among the columns that begin with class `first` the target of each row is; -1 if it is elsewhere."""
    place = target - first
    return ct.where((place >= 0) & (place < columns), place, -1).astype(ct.int32)


@ct.kernel(num_worker_warps=8)
def _linear_cross_entropy_kernel(
    X,
    W,
    Target,
    Part,
    Picked,
    SMOOTHING: ConstBool,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILE_K: ConstInt,
    PERSISTENT: ConstBool,
):
    """What the loss needs of each tile of the logits X (M, K) @ W (K, V), which are nowhere else.

    Part (0, tiles, M) are the logarithms of the sums of exponentials along rows, Picked (M) the logits of the targets;
    with SMOOTHING, Part (1, tiles, M) are the sums of logits along rows.
    """
    zeros = ct.zeros((TILE_M, TILE_N), ct.float32)
    column = ct.arange(TILE_N, dtype=ct.int32)[None, :]

    def compute(m, n):
        tx = _product(X, W, zeros, m, n, TILE_M, TILE_N, TILE_K)
        if SMOOTHING:  # those of columns beyond the last class are zero
            ct.store(Part, (1, n, m), ct.sum(tx, 1).reshape((1, 1, TILE_M)), allow_tma=False)
        columns = ct.minimum(W.shape[1] - n * TILE_N, TILE_N)
        place = _place(ct.load(Target, (m,), (TILE_M,), padding_mode=ZERO), n * TILE_N, columns)
        picked = ct.sum(ct.where(column == place[:, None], tx, 0.0), 1)
        ct.scatter(Picked, m * TILE_M + ct.arange(TILE_M, dtype=ct.int32), picked, mask=place >= 0)
        tx = ct.where(column < columns, tx, -math.inf)
        top = ct.max(tx, 1, keepdims=True)
        base = ct.where(top == -math.inf, 0.0, top)  # -inf - -inf would be NaN, and another tile may be finite
        lse = base + ct.log(ct.sum(_exp(tx - base), 1, keepdims=True))
        ct.store(Part, (0, n, m), lse.reshape((1, 1, TILE_M)), allow_tma=False)

    _each_tile(compute, X.shape[0], W.shape[1], TILE_M, TILE_N, PERSISTENT)


@ct.kernel
def _linear_cross_entropy_combine_kernel(
    Part,
    Picked,
    Target,
    Loss,
    Lse,
    classes: int,
    ignore_index: int,
    SMOOTHING: ConstFloat,
    TILE_N: ConstInt,
    TILE_M: ConstInt,
):
    """Losses of a few rows from the parts of their logits, and the logarithms of their sums of exponentials."""
    i = ct.bid(0)
    top = ct.full((TILE_N, TILE_M), -math.inf, ct.float32)
    total = ct.zeros((TILE_N, TILE_M), ct.float32)
    plain = ct.zeros((TILE_N, TILE_M), ct.float32)
    tile = (1, TILE_N, TILE_M)
    for j in range(ct.cdiv(Part.shape[1], TILE_N)):
        top, total = _fold((_load(Part, (0, j, i), tile).reshape(top.shape),), top, total)
        if SMOOTHING > 0:
            plain = plain + ct.load(Part, (1, j, i), tile, padding_mode=ZERO).reshape(top.shape)

    # The lanes meet once; a NaN, an inf or a row of nothing but -inf makes the sum NaN
    highest = ct.max(top, 0)
    lse = highest + ct.log(ct.sum(total * _exp(top - highest), 0))
    loss = lse - ct.load(Picked, (i,), (TILE_M,), padding_mode=ZERO)
    if SMOOTHING > 0:
        loss = (1.0 - SMOOTHING) * loss + SMOOTHING * (lse - ct.sum(plain, 0) / classes)
    ignored = ct.load(Target, (i,), (TILE_M,), padding_mode=ZERO) == ignore_index
    ct.store(Loss, (i,), ct.where(ignored, 0.0, loss).astype(Loss.dtype), allow_tma=False)
    ct.store(Lse, (i,), lse, allow_tma=False)


@ct.kernel
def _linear_cross_entropy_sum_kernel(Rows, Target, Loss, Count, ignore_index: int, MEAN: ConstBool, TILE: ConstInt):
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


@ct.kernel(num_worker_warps=8)
def _linear_cross_entropy_logits_kernel(
    X,
    W,
    Target,
    Lse,
    dLoss,
    Count,
    dLogits,
    first: int,
    classes: int,
    ignore_index: int,
    SMOOTHING: ConstFloat,
    MEAN: ConstBool,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILE_K: ConstInt,
    PERSISTENT: ConstBool,
):
    """Gradient of the logits X (M, K) @ W (K, N) of classes from `first` on: their softmax less the target, scaled."""
    zeros = ct.zeros((TILE_M, TILE_N), ct.float32)
    column = ct.arange(TILE_N, dtype=ct.int32)[None, :]

    def compute(m, n):
        tx = _product(X, W, zeros, m, n, TILE_M, TILE_N, TILE_K)
        target = ct.load(Target, (m,), (TILE_M,), padding_mode=ZERO)
        scale = ct.load(dLoss, (m,), (TILE_M,), padding_mode=ZERO).astype(ct.float32)
        if MEAN:
            scale = scale / ct.load(Count, (0,), ())
        hit = column == _place(target, first + n * TILE_N, TILE_N)[:, None]
        tdx = _exp(tx - ct.load(Lse, (m,), (TILE_M,), padding_mode=ZERO)[:, None]) - ct.where(hit, 1.0 - SMOOTHING, 0.0)
        tdx = (tdx - SMOOTHING / classes) * scale[:, None]
        tdx = ct.where((target == ignore_index)[:, None], 0.0, tdx)
        ct.store(dLogits, (m, n), tdx.astype(dLogits.dtype))

    _each_tile(compute, X.shape[0], W.shape[1], TILE_M, TILE_N, PERSISTENT)


@ct.kernel(num_worker_warps=8)
def _linear_cross_entropy_product_kernel(
    A, B, Out, ADD: ConstBool, TILE_M: ConstInt, TILE_N: ConstInt, TILE_K: ConstInt, PERSISTENT: ConstBool
):
    """Out (M, N) = A (M, K) @ B (K, N), or with ADD that much more than it was."""

    def compute(m, n):
        tacc = ct.zeros((TILE_M, TILE_N), ct.float32)
        if ADD:
            tacc = ct.load(Out, (m, n), (TILE_M, TILE_N), padding_mode=ZERO)
        tacc = _product(A, B, tacc, m, n, TILE_M, TILE_N, TILE_K)
        ct.store(Out, (m, n), tacc.astype(Out.dtype))

    _each_tile(compute, Out.shape[0], Out.shape[1], TILE_M, TILE_N, PERSISTENT)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_MOST_BLOCKS = 2**24 - 1  # of one launch
_FAR = 2**31  # strides from here on are out of reach of a kernel's 32-bit indices


def _check_operands(**operands):
    """Require tensors of one supported dtype on one CUDA device."""
    first, leader = next(iter(operands.items()))
    for name, x in operands.items():
        if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
            found = getattr(x, "dtype", type(x).__name__)
            raise TypeError(f"{name} is {found}; it must be a tensor of float32, float16, bfloat16")
        if x.dtype != leader.dtype:
            raise TypeError(f"{name} is {x.dtype}; it must be {leader.dtype}, as {first} is")
        if not x.is_cuda:
            raise ValueError(f"{name} is on {x.device}; it must be on a CUDA device")
        if x.device != leader.device:
            raise ValueError(f"{name} is on {x.device}; it must be on {leader.device}, as {first} is")


def _readable(x):
    """Return x (rows, columns), or a copy that TMA can read."""
    unit = 16 // x.element_size()  # elements in 16 bytes
    inner = x.stride()
    if 1 in inner and all(s == 1 or s % unit == 0 for s in x.stride()) and x.data_ptr() % 16 == 0 and max(inner) < _FAR:
        return x
    if inner[0] == 1 < inner[1]:
        return _readable(x.mT).mT
    rows, columns = x.shape
    return x.new_empty((rows, ct.cdiv(columns, unit) * unit))[..., :columns].copy_(x)


def _matrices(hidden, weight):
    """Hidden as rows (M, K), and the weight (V, K)."""
    if weight.shape[1] == 0:  # the sum of nothing is zero, as is the product of zeros
        hidden, weight = hidden.new_zeros((*hidden.shape[:-1], 1)), weight.new_zeros((len(weight), 1))
    return _readable(hidden.reshape(-1, hidden.shape[-1])), _readable(weight)


def _configs(properties, itemsize):
    """The row of the table for a device."""
    generations = CONFIGS[itemsize]
    return generations[max(major for major in generations if major <= properties.major)]


@functools.lru_cache(maxsize=4096)
def _plan(device, itemsize, rows, columns):
    """Choose (blocks, constants) for a product of this size."""
    properties = torch.cuda.get_device_properties(device)
    for config in _configs(properties, itemsize):
        tiles = ct.cdiv(rows, config.tile[0]) * ct.cdiv(columns, config.tile[1])
        if rows <= config.most_rows and config.suits(properties.multi_processor_count, rows, tiles):
            break
    persistent = config.persistent or tiles > _MOST_BLOCKS
    blocks = min(tiles, properties.multi_processor_count) if persistent else tiles
    return blocks, (*config.tile, persistent)


def _launch(kernel, a, b, *arguments):
    """Launch a kernel that multiplies the matrices a and b."""
    blocks, constants = _plan(a.device, a.element_size(), a.shape[0], b.shape[1])
    ct.launch(torch.cuda.current_stream(a.device), (blocks,), kernel, (a, b, *arguments, *constants))


def _forward(hidden, weight, target, ignore_index, smoothing, reduction, out=None):
    """The loss, and what its gradient needs: logarithms of the sums of exponentials, and how many rows count."""
    result = torch.empty(target.shape if reduction == "none" else (), dtype=hidden.dtype, device=hidden.device)
    (x, w), classes = _matrices(hidden, weight), target.reshape(-1)
    rows, lse = torch.empty((2, len(x)), dtype=torch.float32, device=x.device)
    count = torch.empty(1, dtype=torch.float32, device=x.device)
    losses = result.view(-1) if reduction == "none" else rows
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        if len(x):
            _, (_, tile_n, *_) = _plan(x.device, x.element_size(), len(x), len(w))
            part = rows.new_empty((1 + (smoothing > 0), ct.cdiv(len(w), tile_n), len(x)))
            picked = torch.full_like(lse, math.nan)  # where no class is the target
            _launch(_linear_cross_entropy_kernel, x, w.mT, classes, part, picked, smoothing > 0)
            arguments = (part, picked, classes, losses, lse, len(w), ignore_index, smoothing, *TILE_PARTS)
            blocks = ct.cdiv(len(x), TILE_PARTS[1])
            ct.launch(stream, (blocks,), _linear_cross_entropy_combine_kernel, arguments)
        if reduction != "none":
            arguments = (rows, classes, result.view(1), count, ignore_index, reduction == "mean", TILE_SUM)
            ct.launch(stream, (1,), _linear_cross_entropy_sum_kernel, arguments)
    return result if out is None else out.copy_(result), lse, count


def _backward(hidden, weight, target, lse, dlosses, count, needed, ignore_index, smoothing, mean):
    """Gradients of hidden and weight, from the gradient of the logits of a chunk of classes at a time.

    Beside the results, CHUNK numbers of each row are in memory, and of several chunks the sum for hidden in fp32.
    """
    (x, w), classes = _matrices(hidden, weight), target.reshape(-1)
    logits = _linear_cross_entropy_logits_kernel
    product = _linear_cross_entropy_product_kernel
    once = len(w) <= CHUNK
    dx, dw = x.new_empty(x.shape, dtype=x.dtype if once else torch.float32), w.new_empty(w.shape)
    chunk = x.new_empty((len(x), min(CHUNK, ct.cdiv(len(w), 64) * 64)))
    with torch.cuda.device(x.device):
        for first in range(0, len(w), CHUNK):
            part, dpart = w[first : first + CHUNK], dw[first : first + CHUNK]
            dlogits = chunk[:, : len(part)]
            constants = (first, len(w), ignore_index, smoothing, mean)
            _launch(logits, x, part.mT, classes, lse, dlosses, count, chunk, *constants)  # whole units of 16 bytes
            if needed[0]:
                _launch(product, dlogits, part, dx, first > 0)
            if needed[1]:
                _launch(product, dlogits.mT, x, dpart, False)
    return dx.to(hidden.dtype).view(hidden.shape) if needed[0] else None, dw if needed[1] else None


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, weight, target, ignore_index, smoothing, reduction):
        loss, lse, count = _forward(hidden, weight, target, ignore_index, smoothing, reduction)
        ctx.save_for_backward(hidden, weight, target, lse, count)
        ctx.constants = (ignore_index, smoothing, reduction == "mean")
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dloss):
        hidden, weight, target, lse, count = ctx.saved_tensors
        if hidden.numel() == 0:
            return torch.zeros_like(hidden), torch.zeros_like(weight), None, None, None, None
        dlosses = dloss.expand(target.shape).reshape(-1)
        needed = ctx.needs_input_grad
        dx, dw = _backward(hidden, weight, target, lse, dlosses, count, needed, *ctx.constants)
        return dx, dw, None, None, None, None


@register_impl("linear_cross_entropy", backend="cutile")
def linear_cross_entropy(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Cross entropy of hidden @ weight.T and target classes, without the logits in memory."""
    if kwargs:
        raise TypeError(f"linear_cross_entropy got unexpected arguments: {', '.join(kwargs)}")
    _check_operands(hidden=hidden, weight=weight)
    if hidden.ndim == 0:
        raise ValueError(f"hidden has shape {tuple(hidden.shape)}; it must be (..., K)")
    if weight.ndim != 2 or weight.shape[1] != hidden.shape[-1] or weight.shape[0] == 0:
        found = f"{tuple(weight.shape)} beside hidden {tuple(hidden.shape)}"
        raise ValueError(f"weight has shape {found}; it must be (V, K), with at least one class")
    if not isinstance(target, torch.Tensor) or target.dtype not in (torch.int32, torch.int64):
        found = getattr(target, "dtype", type(target).__name__)
        raise TypeError(f"target is {found}; it must be a tensor of int32 or int64")
    if target.shape != hidden.shape[:-1] or target.device != hidden.device:
        found = f"{tuple(target.shape)} on {target.device}"
        raise ValueError(f"target is {found}; it must be {tuple(hidden.shape[:-1])} on {hidden.device}, like hidden")
    if not isinstance(ignore_index, int):
        raise TypeError(f"ignore_index is {ignore_index!r}; it must be an int")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing is {label_smoothing!r}; it must lie between 0 and 1")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction is {reduction!r}; it must be mean, sum or none")
    shape = target.shape if reduction == "none" else torch.Size(())
    if out is not None and (out.shape != shape or out.dtype != hidden.dtype or out.device != hidden.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {tuple(shape)} of {hidden.dtype} on {hidden.device}")
    smoothing = float(label_smoothing)
    if torch.is_grad_enabled() and (hidden.requires_grad or weight.requires_grad):
        if out is not None:
            raise ValueError("out is given and an input requires a gradient; leave out away, or use torch.no_grad()")
        return _LinearCrossEntropy.apply(hidden, weight, target, ignore_index, smoothing, reduction)
    return _forward(hidden, weight, target, ignore_index, smoothing, reduction, out)[0]
