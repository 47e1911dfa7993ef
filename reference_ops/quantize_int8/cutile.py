"""cuTile backend of quantize_int8."""

import functools
import math
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstFloat = ct.Constant[float]

HELD = 16384  # words of 32 bits that a block holds in registers, one element or two; what is larger is read twice
TILE_N = 2048  # elements of one of the tiles that make up a row: 16 bytes of bf16 for each of 256 threads
BLOCK = 4096  # elements of several short rows together, and of a tile of what is read twice
MAX_BLOCKS = 2**24 - 1  # along one axis of a grid
SMALLEST = 2.0**-126  # scale, so that its reciprocal is finite: that of zeros
HINTS = {  # by the words that a block holds, at most; chosen by the registers that the compiler reports
    2048: {"occupancy": 8, "num_worker_warps": 4},
    4096: {"occupancy": 4, "num_worker_warps": 4},
    6144: {"occupancy": 3, "num_worker_warps": 8},
    12288: {"occupancy": 2, "num_worker_warps": 8},
    16384: {"occupancy": ct.ByTarget(sm_90=2, default=1), "num_worker_warps": 8},
}
HINTS_LONG = {"occupancy": 2, "num_worker_warps": 8}


def _load(X, index, tile):
    """Tile of X as it is; zero outside, which is no magnitude."""
    # Plain loads: all tiles of a row are under way at once, and need no shared memory
    return ct.load(X, index, tile, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)


def _magnitude(t):
    """Bits of the absolute values: as integers they have the same order, with NaN above infinity."""
    return ct.bitcast(ct.abs(t), ct.static_eval(ct.int32 if t.dtype == ct.float32 else ct.int16))


def _scale(top, X, LARGEST: ConstFloat):
    """Scale of blocks from the bits of the largest magnitude of each."""
    scale = ct.bitcast(top, X.dtype).astype(ct.float32) * ct.static_eval(1 / LARGEST)
    return ct.where(scale < SMALLEST, SMALLEST, scale)  # and NaN stays


def _store(Y, index, tx, scale):
    """Store scaled values, rounded to nearest even; zeros where the scale is not finite."""
    t = ct.where(scale < math.inf, tx.astype(ct.float32) * (1.0 / scale), 0.0)
    bits = ct.bitcast(t + 1.5 * 2**23, ct.int32)  # floats so large are whole, and their last bits the integer
    ct.store(Y, index, bits.astype(Y.dtype), allow_tma=False)


@ct.kernel
def _quantize_int8_kernel(
    X,
    Y,
    Scale,
    LARGEST: ConstFloat,
    TILE_M: ConstInt,
    TILE_B: ConstInt,
    TILE_R: ConstInt,
    TILE_N: ConstInt,
    TILES: ConstInt,
):
    """Blocks (B, N) of X (M, B, R, N), held in registers: read once, written once; Scale is (M, R)."""
    blocks = ct.cdiv(X.shape[2], TILE_R)
    m, r = ct.bid(0) // blocks, ct.bid(0) % blocks
    txs = ()
    for j in ct.static_iter(range(TILES)):
        txs += (_load(X, (m, 0, r, j), (TILE_M, TILE_B, TILE_R, TILE_N)),)

    # Lane by lane first, so that the lanes meet once
    top = _magnitude(txs[0])
    for tx in ct.static_iter(txs[1:]):
        top = ct.maximum(top, _magnitude(tx))
    scale = _scale(ct.max(top, (1, 3), keepdims=True), X, LARGEST)
    for j in ct.static_iter(range(TILES)):
        _store(Y, (m, 0, r, j), txs[j], scale)
    ct.store(Scale, (m, r), scale.reshape((TILE_M, TILE_R)), allow_tma=False)


@ct.kernel(**HINTS_LONG)
def _quantize_int8_long_kernel(
    X: ct.IndexedWithInt64,
    Y: ct.IndexedWithInt64,
    Scale: ct.IndexedWithInt64,
    LARGEST: ConstFloat,
    TILE_M: ConstInt,
    TILE_B: ConstInt,
    TILE_R: ConstInt,
    TILE_N: ConstInt,
):
    """Blocks (B, N) of X (M, B, R, N) of any size: a pass for the largest magnitude, and one that writes."""
    tile = (TILE_M, TILE_B, TILE_R, TILE_N)
    blocks = ct.int32(ct.cdiv(X.shape[2], TILE_R))
    m, r = ct.bid(0) // blocks, ct.bid(0) % blocks
    columns = ct.int32(ct.cdiv(X.shape[3], TILE_N))
    steps = ct.int32(ct.cdiv(X.shape[1], TILE_B)) * columns

    top = ct.zeros(tile, ct.static_eval(ct.int32 if X.dtype == ct.float32 else ct.int16))
    for step in range(steps):
        top = ct.maximum(top, _magnitude(_load(X, (m, step // columns, r, step % columns), tile)))
    scale = _scale(ct.max(top, (1, 3), keepdims=True), X, LARGEST)
    for step in range(steps):
        index = (m, step // columns, r, step % columns)
        _store(Y, index, _load(X, index, tile), scale)
    ct.store(Scale, (m, r), scale.reshape((TILE_M, TILE_R)), allow_tma=False)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_LARGEST = 127.0


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.cache
def _hinted(kernel, elements):
    """Kernel with the hints for a block of so many elements."""
    return kernel.replace_hints(**HINTS[next((n for n in HINTS if n >= elements), max(HINTS))])


@functools.lru_cache(maxsize=4096)
def _plan(m, b, r, n, itemsize, wide):
    """Choose (whether blocks are too large for registers, grid, tile, tiles) for blocks (B, N) of (M, B, R, N)."""
    tile_b, tile_n = _power_of_two(b), min(_power_of_two(n), TILE_N)
    tiles = ct.cdiv(n, tile_n)
    long = wide or tile_b * tile_n * tiles * itemsize > 4 * HELD
    if long:
        tile_n, tiles = min(_power_of_two(n), BLOCK), 1
        tile_b = min(tile_b, BLOCK // tile_n)
    room = max(BLOCK // (tile_b * tile_n * tiles), 1)
    tile_r = min(_power_of_two(r), 1 << room.bit_length() - 1)
    tile_m = 1
    while tile_m < m and (2 * tile_m * tile_r <= room or ct.cdiv(m, tile_m) * ct.cdiv(r, tile_r) > MAX_BLOCKS):
        tile_m *= 2
    return long, (ct.cdiv(m, tile_m) * ct.cdiv(r, tile_r),), (tile_m, tile_b, tile_r, tile_n), tiles


def _quantize(x, b, n, largest, values, scale):
    """Write the values and the scales of the blocks (b, n) of `x`."""
    if b == 1 and x.is_contiguous():  # blocks follow each other
        shape = (x.numel() // n, 1, 1, n)
    else:
        shape = (-1, b, x.shape[-1] // n, n)
    blocks = [x.reshape(shape), values.view(shape)]
    m, _, r, _ = blocks[0].shape
    wide = max(*blocks[0].shape, *blocks[0].stride(), *blocks[1].stride()) >= 2**31
    long, grid, tile, tiles = _plan(*blocks[0].shape, x.element_size(), wide)
    scale = scale if scale.shape == (m, r) else scale.view(m, r)
    arguments = (*blocks, scale, largest, *tile)
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        if long:
            ct.launch(stream, grid, _quantize_int8_long_kernel, arguments)
        else:
            words = math.prod(tile) * tiles * x.element_size() // 4
            hinted = _hinted(_quantize_int8_kernel, words)
            ct.launch(stream, grid, hinted, (*arguments, tiles))


def _block_and_scales(x, block):
    """Rows and columns of a block of `x`, and the shape of the scales."""
    leading, n = x.shape[:-1], x.shape[-1]
    if block is None:
        return 1, n, (*leading, 1)
    if not isinstance(block, tuple | list) or len(block) != 2 or not all(isinstance(k, int) and k > 0 for k in block):
        raise TypeError(f"block is {block!r}; it must be two positive ints, rows and columns, or None")
    rows, columns = block
    m = leading[-1] if leading else 1
    if m % rows or n % columns:
        raise ValueError(f"block is {block}; it must divide ({m}, {n}), the rows and columns of x")
    return rows, columns, (*leading[:-1], *(m // rows for m in leading[-1:]), n // columns)


def _own(out, x, shapes, dtypes):
    """`out`, or tensors of their own where those of `out` are strided or may overlap `x` or each other."""
    if len(out) != 2:
        raise ValueError(f"out has {len(out)} tensors; it must have two, values and scale")
    for name, tensor, shape, kind in zip(("values", "scale"), out, shapes, dtypes, strict=True):
        if tensor.shape != shape or tensor.dtype != kind or tensor.device != x.device:
            found = f"{tuple(tensor.shape)} of {tensor.dtype} on {tensor.device}"
            raise ValueError(f"out has {name} {found}; it must be {tuple(shape)} of {kind} on {x.device}")
    storages = [t.untyped_storage().data_ptr() for t in (x, *out)]
    if all(t.is_contiguous() and storages.count(t.untyped_storage().data_ptr()) == 1 for t in out):
        return out
    return tuple(torch.empty_like(t, memory_format=torch.contiguous_format) for t in out)


@register_impl("quantize_int8", backend="cutile")
def quantize_int8(
    x: torch.Tensor,
    block: tuple[int, int] | None = None,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Values as integers of 8 bits from -127 to 127, with a scale for each row or block."""
    if kwargs:
        raise TypeError(f"quantize_int8 got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    if x.ndim == 0:
        raise ValueError("x is a scalar; it must have at least one dimension, the rows to quantize")
    rows, columns, scales = _block_and_scales(x, block)
    shapes, dtypes = (x.shape, scales), (torch.int8, torch.float32)
    if out is None:
        results = out = tuple(torch.empty(s, dtype=d, device=x.device) for s, d in zip(shapes, dtypes, strict=True))
    else:
        results = _own(out, x, shapes, dtypes)
    if x.numel() == 0:
        out[1].fill_(SMALLEST)
        return out
    _quantize(x, rows, columns, _LARGEST, *results)
    if results is not out:
        for tensor, result in zip(out, results, strict=True):
            tensor.copy_(result)
    return out
