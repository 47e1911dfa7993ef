"""cuTile backend of bmm."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]

ZERO = ct.PaddingMode.ZERO
GROUP_ROWS = 2048  # rows whose tiles are taken before the next column: what they read of B stays in the L2 cache


@dataclass(frozen=True)
class _Config:
    """A tile (M, N, K), the compiler hints that go with it, and what it is for."""

    tile: tuple[int, int, int]
    num_ctas: int = 1  # blocks that share a tile
    persistent: bool = False  # one wave of blocks, each of which loads its next tile while it stores the last
    most_rows: int = 2**31

    @functools.cached_property
    def kernel(self):
        kernel = _bmm_kernel
        return kernel.replace_hints(num_ctas=self.num_ctas)

    def suits(self, multiprocessors, rows, tiles):
        """Whether nearly all multiprocessors are busy with tiles that are at least half full."""
        waves = tiles * self.num_ctas / multiprocessors
        return self.tile[0] < 2 * rows and waves >= (2 if self.persistent else 0.9)


# By bytes of an element and the first major compute capability that they are for; of those that allow as many rows, the
# first that suits is taken, else the last. Measured on sm_90, elsewhere chosen by the registers that they need.
CONFIGS = {
    2: {
        8: (_Config((128, 128, 32)), _Config((64, 64, 32))),
        9: (
            _Config((16, 64, 128), most_rows=16),
            _Config((256, 256, 64), num_ctas=2, persistent=True),
            _Config((128, 256, 64), persistent=True),
            _Config((128, 256, 64)),
            _Config((128, 128, 64)),
            _Config((64, 128, 128)),
            _Config((64, 64, 128)),
        ),
        10: (
            _Config((256, 256, 64), num_ctas=2, persistent=True),
            _Config((128, 128, 64)),
            _Config((64, 64, 64)),
        ),
        12: (_Config((128, 128, 64)), _Config((64, 64, 64))),
    },
    4: {8: (_Config((64, 64, 16)),), 9: (_Config((128, 128, 8)), _Config((64, 64, 16)))},
}


def _position(tile, tiles_m, tiles_n, group):
    """Row and column of a tile, counted down `group` rows of tiles, then on to the next column."""
    in_group = group * tiles_n
    first = tile // in_group * group
    height = ct.minimum(tiles_m - first, group)
    return first + tile % in_group % height, tile % in_group // height


def _matrix(A, i, repeats):
    """Which matrix of A is that of `i` in the batch, where each stands `repeats` times, and all of them again."""
    return i % (A.shape[0] * repeats) // repeats  # not a constant 0 of a single one, which took too many registers


def _product(A, B, ia, ib, m, n, steps, TILE_M, TILE_N, TILE_K):
    """Tile (m, n) of A @ B, summed over a range of steps."""
    # Zeros beyond the last k add nothing; rows and columns beyond the edge of Out are computed and not stored.
    tacc = ct.zeros((TILE_M, TILE_N), ct.float32)
    for k in range(steps[0], steps[1]):
        ta = ct.load(A, (ia, m, k), (1, TILE_M, TILE_K), padding_mode=ZERO).reshape((TILE_M, TILE_K))
        tb = ct.load(B, (ib, k, n), (1, TILE_K, TILE_N), padding_mode=ZERO).reshape((TILE_K, TILE_N))
        tacc = ct.mma(ta, tb, tacc)
    return tacc


@ct.kernel(num_worker_warps=8)
def _bmm_kernel(
    A,
    B,
    Out,
    repeats: tuple[int, int],
    tiles: int,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILE_K: ConstInt,
    PERSISTENT: ConstBool,
):
    """Out (batch, M, N) = A (.., M, K) @ B (.., K, N), one tile to a block or, where PERSISTENT, several.

    A and B have fewer matrices where they repeat: each stands `repeats` times, and all of them again.
    """
    tiles_m = ct.num_tiles(Out, 1, (1, TILE_M, TILE_N))
    tiles_n = ct.num_tiles(Out, 2, (1, TILE_M, TILE_N))
    steps = (0, ct.num_tiles(A, 2, (1, TILE_M, TILE_K)))

    def compute(tile):
        i = tile // (tiles_m * tiles_n)
        m, n = _position(tile % (tiles_m * tiles_n), tiles_m, tiles_n, GROUP_ROWS // TILE_M)
        ia, ib = _matrix(A, i, repeats[0]), _matrix(B, i, repeats[1])
        tacc = _product(A, B, ia, ib, m, n, steps, TILE_M, TILE_N, TILE_K)
        ct.store(Out, (i, m, n), tacc.astype(Out.dtype).reshape((1, TILE_M, TILE_N)))

    if PERSISTENT:
        for tile in range(ct.bid(0), tiles, ct.num_blocks(0)):
            compute(tile)
    else:
        compute(ct.bid(0))


@ct.kernel(num_worker_warps=8)
def _bmm_split_kernel(
    A,
    B,
    Partial,
    repeats: tuple[int, int],
    length: int,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILE_K: ConstInt,
):
    """Partial (batch, splits, M, N) = A @ B, each split summed over `length` steps of its own."""
    tiles_m = ct.num_tiles(Partial, 2, (1, 1, TILE_M, TILE_N))
    tiles_n = ct.num_tiles(Partial, 3, (1, 1, TILE_M, TILE_N))
    part, tile = ct.bid(0) // (tiles_m * tiles_n), ct.bid(0) % (tiles_m * tiles_n)
    i, split = part // Partial.shape[1], part % Partial.shape[1]
    m, n = tile // tiles_n, tile % tiles_n
    steps = (split * length, min((split + 1) * length, ct.num_tiles(A, 2, (1, TILE_M, TILE_K))))
    ia, ib = _matrix(A, i, repeats[0]), _matrix(B, i, repeats[1])
    tacc = _product(A, B, ia, ib, m, n, steps, TILE_M, TILE_N, TILE_K)
    ct.store(Partial, (i, split, m, n), tacc.reshape((1, 1, TILE_M, TILE_N)))


@ct.kernel
def _bmm_combine_kernel(
    Partial,
    Out,
    TILE_N: ConstInt,
):
    """Out (batch, M, N) = the sum of Partial (batch, splits, M, N) over its splits, one part of a row to a block."""
    tiles_n = ct.num_tiles(Out, 2, (1, 1, TILE_N))
    row, n = ct.bid(0) // tiles_n, ct.bid(0) % tiles_n
    i, m = row // Out.shape[1], row % Out.shape[1]
    tacc = ct.zeros((1, TILE_N), Partial.dtype)
    for split in range(Partial.shape[1]):
        tsplit = ct.load(Partial, (i, split, m, n), (1, 1, 1, TILE_N), padding_mode=ZERO, allow_tma=False)
        tacc = tacc + tsplit.reshape((1, TILE_N))
    ct.store(Out, (i, m, n), tacc.astype(Out.dtype).reshape((1, 1, TILE_N)))


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_MOST_TILES = 2**24 - 1  # of one launch, as many as the blocks of a grid
LEAST_STEPS = 8  # of a sum that is split, so that loading and multiplying overlap
MOST_SPLITS = 128
COMBINED = 256  # elements of a row whose parts a block adds up
_FAR = 2**31  # strides from here on are out of reach of a kernel's 32-bit indices


@functools.lru_cache(maxsize=4096)
def _plan(device, itemsize, batch, rows, columns, terms):
    """Choose (kernel, blocks, tiles, constants) for a result of this size, of sums of so many terms."""
    properties = torch.cuda.get_device_properties(device)
    for config in _configs(properties, itemsize):
        tiles = batch * ct.cdiv(rows, config.tile[0]) * ct.cdiv(columns, config.tile[1])
        if config.num_ctas > 1 and terms <= config.tile[2]:
            continue  # blocks of a pair wait for each other, which is long beside a single step
        if rows <= config.most_rows and config.suits(properties.multi_processor_count, rows, tiles):
            break
    blocks = min(tiles, properties.multi_processor_count // config.num_ctas) if config.persistent else tiles
    return config.kernel, blocks, tiles, (*config.tile, config.persistent)


def _configs(properties, itemsize):
    """The row of the table for a device."""
    generations = CONFIGS[itemsize]
    return generations[max(major for major in generations if major <= properties.major)]


@functools.lru_cache(maxsize=4096)
def _splits(device, itemsize, batch, rows, columns, terms):
    """Choose (tile, tiles, splits, steps of each); there is one split unless sums are long and tiles too few."""
    properties = torch.cuda.get_device_properties(device)
    *_, last = configs = _configs(properties, itemsize)
    single = (config for config in configs if max(config.tile) <= 128 and rows <= config.most_rows)
    tile = next((c.tile for c in single if c.tile[0] < 2 * rows and c.tile[1] < 2 * columns), last.tile)
    tiles, fewest = (batch * ct.cdiv(rows, m) * ct.cdiv(columns, n) for m, n, _ in (tile, last.tile))
    steps = ct.cdiv(terms, tile[2])
    splits = min(properties.multi_processor_count // tiles, steps // LEAST_STEPS, MOST_SPLITS)
    if splits < 2 or 2 * fewest > properties.multi_processor_count:
        return tile, tiles, 1, steps
    length = ct.cdiv(steps, splits)
    return tile, tiles, ct.cdiv(steps, length), length


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


def _stacked(x, shared):
    """See x as (batch, rows, columns); a b that is shared makes all rows of a those of one matrix."""
    if shared:
        return x.reshape(1, -1, x.shape[-1])
    return x if x.ndim == 3 else x.reshape(-1, *x.shape[-2:])


def _readable(x):
    """Return x (batch, rows, columns), or a copy that TMA can read, which is more than ten times as fast."""
    unit = 16 // x.element_size()  # elements in 16 bytes
    inner = x.stride()[1:]
    if 1 in inner and all(s == 1 or s % unit == 0 for s in x.stride()) and x.data_ptr() % 16 == 0 and max(inner) < _FAR:
        return x
    if inner[0] == 1 < inner[1]:
        return _readable(x.mT).mT
    batch, rows, columns = x.shape
    return x.new_empty((batch, rows, ct.cdiv(columns, unit) * unit))[..., :columns].copy_(x)


def _overruns(out):
    """Whether TMA, which stores 16 bytes at a time, would write beside `out`."""
    unit = 16 // out.element_size()  # elements in 16 bytes
    axes = {step: n for n, step in zip(out.shape, out.stride(), strict=True) if n > 1}
    length = axes.pop(1, 0)  # of a row; one of a single element is stored without TMA
    return length % unit > 0 and out.data_ptr() % 16 == 0 and all(step % unit == 0 for step in axes)


def _shares_memory(out, *operands):
    """Whether writing the result could change an operand that is still read."""
    return any(x.untyped_storage().data_ptr() == out.untyped_storage().data_ptr() for x in operands)


@functools.lru_cache(maxsize=4096)
def _batch(a, b):
    """Leading dimensions of the product of arrays of these shapes; raises ValueError where there is none."""
    try:
        batch = torch.broadcast_shapes(a[:-2], b[:-2])
    except RuntimeError:
        batch = None
    if len(b) < 2 or b[-2] != a[-1] or batch is None:
        found = f"{b} beside a {a}"
        raise ValueError(f"b has shape {found}; it must be (..., K, N), and the leading dimensions broadcast")
    return batch


def _spread(x, batch):
    """Return x (..., rows, columns) as (stack, repeats): matrix i of the batch is stack[i // repeats % len(stack)]."""
    if x.shape[:-2] == batch:
        return _stacked(x, False), 1
    sizes = (1,) * (len(batch) + 2 - x.ndim) + x.shape[:-2]
    own = [axis for axis, size in enumerate(sizes) if size > 1]
    if own and sizes[own[0] : own[-1] + 1] != batch[own[0] : own[-1] + 1]:  # repeated between its own dimensions
        return x.expand(*batch, *x.shape[-2:]).reshape(-1, *x.shape[-2:]), 1
    return _stacked(x, False), math.prod(batch[own[-1] + 1 :]) if own else 1


def _stacks(a, b, batch):
    """Return a and b as stacks of matrices and the repeats of each; beside a single b, a is one matrix too."""
    if b.ndim == 2:
        return [_readable(_stacked(a, True)), _readable(b[None])], (1, 1)
    (a, repeats_a), (b, repeats_b) = _spread(a, batch), _spread(b, batch)
    return [_readable(a), _readable(b)], (repeats_a, repeats_b)


def _near(x):
    """The same array with a stride that a kernel can hold: that of a batch of one is never used."""
    return x.as_strided(x.shape, (max(x.stride()[1:]), *x.stride()[1:]))


def _launch(arrays, rest, repeats):
    """Launch on (A, B, ..., Out) of three dimensions, in parts where the grid or 32-bit strides do not reach."""
    device, itemsize = arrays[0].device, arrays[0].element_size()
    (batch, rows, columns), terms = arrays[-1].shape, arrays[0].shape[2]
    kernel, blocks, tiles, constants = _plan(device, itemsize, batch, rows, columns, terms)
    far = any(x.stride(0) >= _FAR for x in arrays)
    if batch > 1 and (far or tiles > _MOST_TILES):
        numbers = torch.arange(batch, device=device)
        whole = [x if len(x) == batch else x[numbers // n % len(x)] for x, n in zip(arrays[:2], repeats, strict=True)]
        for half in zip(*(x.tensor_split(2) for x in (*whole, *arrays[2:])), strict=True):
            _launch(half, rest, (1, 1))
        return
    if far:
        arrays = [_near(x) for x in arrays]
    tile, parts, splits, length = _splits(device, itemsize, batch, rows, columns, terms)
    with torch.cuda.device(device):
        stream = torch.cuda.current_stream(device)
        if splits == 1:
            ct.launch(stream, (blocks,), kernel, (*arrays, *rest, repeats, tiles, *constants))
            return
        A, B, *others = arrays
        partial = A.new_empty((batch, splits, rows, columns), dtype=torch.float32)
        kernel = _bmm_split_kernel
        ct.launch(stream, (parts * splits,), kernel, (A, B, partial, repeats, length, *tile))
        kernel = _bmm_combine_kernel
        width = min(COMBINED, 1 << (columns - 1).bit_length())
        blocks = batch * rows * ct.cdiv(columns, width)
        ct.launch(stream, (blocks,), kernel, (partial, *others, *rest, width))


@register_impl("bmm", backend="cutile")
def bmm(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Multiply stacks of matrices, a @ b, with leading dimensions that broadcast."""
    if kwargs:
        raise TypeError(f"bmm got unexpected arguments: {', '.join(kwargs)}")
    _check_operands(a=a, b=b)
    if a.ndim < 2:
        raise ValueError(f"a has shape {tuple(a.shape)}; it must be (..., M, K)")
    batch = _batch(tuple(a.shape), tuple(b.shape))
    shape = (*batch, a.shape[-2], b.shape[-1])
    if out is None:
        out = torch.empty(shape, dtype=a.dtype, device=a.device)
        direct = True
    elif out.shape != shape or out.dtype != a.dtype or out.device != a.device:
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {a.dtype} on {a.device}")
    else:
        direct = out.is_contiguous() or (out.ndim == 2 and max(out.stride()) < _FAR)
        # A matrix of a stack may be launched alone
        direct = direct and not _overruns(out.flatten(0, -3)[-1:] if out.ndim > 2 else out)
        direct = direct and not _shares_memory(out, a, b)
    if out.numel() == 0:
        return out
    if a.shape[-1] == 0:  # the sum of nothing is zero, as is the product of zeros
        a, b = a.new_zeros((*a.shape[:-1], 1)), b.new_zeros((*b.shape[:-2], 1, b.shape[-1]))
    result = out if direct else torch.empty_like(out, memory_format=torch.contiguous_format)
    arrays, repeats = _stacks(a, b, batch)
    arrays += [_stacked(result, b.ndim == 2)]
    _launch(arrays, (), repeats)
    if not direct:
        out.copy_(result)
    return out
