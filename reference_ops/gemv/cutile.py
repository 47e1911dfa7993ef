"""cuTile backend of gemv."""

import functools
from dataclasses import dataclass
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]

ZERO = ct.PaddingMode.ZERO


@dataclass(frozen=True)
class _Config:
    """Tile (M, K) of a matrix that lies row by row, (K, M) of one by columns, and the occupancy of either."""

    tiles: tuple[tuple[int, int], tuple[int, int]]
    occupancies: tuple[int, int]

    @functools.cached_property
    def kernels(self):
        kernel = _gemv_kernel
        return tuple(kernel.replace_hints(occupancy=occupancy) for occupancy in self.occupancies)


# By the first major compute capability that they are for. Rows on sm_90 were measured, the rest is chosen by the bytes
# in flight and the registers.
CONFIGS = {
    8: _Config(((4, 512), (16, 128)), (4, 4)),
    9: _Config(((2, 1024), (32, 128)), (6, 4)),
}
WAVES = 4  # blocks for each that fits at once, where there are fewer rows than would fit and they are split
COMBINED = 128  # rows whose splits a block adds up


def _loaded(A, X, ms, ks, BY_ROWS):
    """Tiles of A and X; gathered, because a load that pads has a branch around it, and these all go out at once."""
    if BY_ROWS:
        return ct.gather(A, (ms[:, None], ks[None, :])), ct.gather(X, ks)[None, :]
    return ct.gather(A, (ks[:, None], ms[None, :])), ct.gather(X, ks)[:, None]


@ct.kernel
def _gemv_kernel(A, X, Partial, length: int, TILE: ct.Constant, BY_ROWS: ConstBool):
    """Partial (splits, M) = A (M, K), or (K, M), @ X (K), each split summed over `length` tiles of its own."""
    TILE_M, TILE_K = (TILE[0], TILE[1]) if BY_ROWS else (TILE[1], TILE[0])
    m, split = ct.bid(0), ct.bid(1)

    ms, ks = m * TILE_M + ct.arange(TILE_M, dtype=ct.int32), ct.arange(TILE_K, dtype=ct.int32)
    tacc = ct.zeros((TILE[0], TILE[1]), ct.float32)
    first = split * length
    ta, tx = _loaded(A, X, ms, first * TILE_K + ks, BY_ROWS)
    for k in range(first + 1, min(first + length, ct.num_tiles(X, 0, (TILE_K,)))):
        ta_next, tx_next = _loaded(A, X, ms, k * TILE_K + ks, BY_ROWS)  # under way while the last ones are added up
        tacc = tacc + ta.astype(ct.float32) * tx.astype(ct.float32)
        ta, tx = ta_next, tx_next
    tacc = tacc + ta.astype(ct.float32) * tx.astype(ct.float32)
    tsum = ct.sum(tacc, axis=1) if BY_ROWS else ct.sum(tacc, axis=0)
    # TMA would write whole units of 16 bytes, beyond the end of a vector of another length
    ct.store(Partial, (split, m), tsum.astype(Partial.dtype).reshape((1, TILE_M)), allow_tma=False)


@ct.kernel
def _gemv_combine_kernel(Partial, Out, SPLITS: ConstInt, TILE_M: ConstInt):
    """Out (M) = the sum of Partial (splits, M) over its splits."""
    m = ct.bid(0)
    tsplits = ct.load(Partial, (0, m), (SPLITS, TILE_M), padding_mode=ZERO).astype(ct.float32)
    ct.store(Out, (m,), ct.sum(tsplits, axis=0).astype(Out.dtype), allow_tma=False)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_MOST_SPLITS = 128
_MOST_BLOCKS = 2**24 - 1  # of a grid
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


@functools.lru_cache(maxsize=4096)
def _plan(device, rows, terms, by_rows):
    """Choose (kernel, tile, tiles, splits, tiles of K in each) for a matrix of this size."""
    properties = torch.cuda.get_device_properties(device)
    config = CONFIGS[max(major for major in CONFIGS if major <= properties.major)]
    kernel, tile, occupancy = (items[not by_rows] for items in (config.kernels, config.tiles, config.occupancies))
    tile_m, tile_k = tile if by_rows else reversed(tile)
    tiles, steps = ct.cdiv(rows, tile_m), ct.cdiv(terms, tile_k)
    fit = occupancy * properties.multi_processor_count
    wanted = 1 if tiles >= fit else ct.cdiv(WAVES * fit, tiles)
    length = ct.cdiv(steps, min(wanted, steps, _MOST_SPLITS))
    return kernel, tile, tiles, ct.cdiv(steps, length), length


def _multiply(a, x, out):
    """Multiply a (M, K) by x into out (M), in parts where a grid does not reach."""
    by_rows = a.stride(1) == 1
    kernel, tile, tiles, splits, length = _plan(a.device, *a.shape, by_rows)
    if tiles > _MOST_BLOCKS:
        for part, result in zip(a.tensor_split(2), out.tensor_split(2), strict=True):
            _multiply(part, x, result)
        return
    partial = out[None]
    if splits > 1:
        partial = a.new_empty((splits, a.shape[0]), dtype=torch.float32)
    stream = torch.cuda.current_stream(a.device)
    ct.launch(stream, (tiles, splits), kernel, (a if by_rows else a.mT, x, partial, length, tile, by_rows))
    if splits > 1:
        arguments = (partial, out, 1 << (splits - 1).bit_length(), COMBINED)
        kernel = _gemv_combine_kernel
        ct.launch(stream, (ct.cdiv(a.shape[0], COMBINED),), kernel, arguments)


@register_impl("gemv", backend="cutile")
def gemv(
    a: torch.Tensor,
    x: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Multiply a matrix, or each of a stack of them, by one vector."""
    if kwargs:
        raise TypeError(f"gemv got unexpected arguments: {', '.join(kwargs)}")
    _check_operands(a=a, x=x)
    if a.ndim == 0:
        raise ValueError(f"a has shape {tuple(a.shape)}; it must be (..., M, K)")
    if x.shape != a.shape[-1:]:
        raise ValueError(f"x has shape {tuple(x.shape)} beside a {tuple(a.shape)}; it must be {tuple(a.shape[-1:])}")
    shape = a.shape[:-1]
    if out is None:
        out = torch.empty(shape, dtype=a.dtype, device=a.device)
    elif out.shape != shape or out.dtype != a.dtype or out.device != a.device:
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {tuple(shape)} of {a.dtype} on {a.device}")
    if out.numel() == 0:
        return out
    if x.numel() == 0:  # the sum of nothing
        return out.zero_()
    rows = a.reshape(-1, a.shape[-1])
    if 1 not in rows.stride() or max(rows.stride()) >= _FAR:
        rows = rows.contiguous()
    direct = out.is_contiguous() and all(
        t.untyped_storage().data_ptr() != out.untyped_storage().data_ptr() for t in (a, x)
    )
    result = out if direct else torch.empty_like(out, memory_format=torch.contiguous_format)
    with torch.cuda.device(a.device):
        _multiply(rows, x, result.view(-1))
    if not direct:
        out.copy_(result)
    return out
