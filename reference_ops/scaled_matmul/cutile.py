"""cuTile backend of scaled_matmul."""

import functools
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
        kernel = _scaled_matmul_kernel
        return kernel.replace_hints(num_ctas=self.num_ctas)

    @functools.cached_property
    def block_kernel(self):
        kernel = _scaled_matmul_block_kernel
        return kernel.replace_hints(num_ctas=self.num_ctas)

    def suits(self, multiprocessors, rows, tiles):
        """Whether nearly all multiprocessors are busy with tiles that are at least half full."""
        waves = tiles * self.num_ctas / multiprocessors
        return self.tile[0] < 2 * rows and waves >= (2 if self.persistent else 0.8)


BLOCK = 128  # consecutive k that share a scale, for B with as many columns
# By bytes of an element and the first major compute capability that they are for; of those that allow as many rows, the
# first that suits is taken, else the last. Measured on sm_90, elsewhere chosen by the registers that they need; not
# wider than a block of B, and small, because the sum of a step is kept beside that of all steps.
CONFIGS = {
    1: {
        9: (
            _Config((16, 64, 128), most_rows=16),
            _Config((128, 128, 256), persistent=True),
            _Config((128, 128, 128)),
            _Config((64, 128, 128)),
            _Config((64, 64, 128)),
            _Config((64, 64, 128), num_ctas=2),
        ),
        10: (
            _Config((16, 64, 128), most_rows=16),
            _Config((128, 128, 128), persistent=True),
            _Config((128, 128, 128)),
            _Config((64, 128, 128)),
            _Config((64, 64, 128)),
            _Config((64, 64, 128), num_ctas=2),
        ),
        12: (_Config((128, 128, 128)), _Config((64, 64, 128))),
    },
}


def _position(tile, tiles_m, tiles_n, group):
    """Row and column of a tile, counted down `group` rows of tiles, then on to the next column."""
    in_group = group * tiles_n
    first = tile // in_group * group
    height = ct.minimum(tiles_m - first, group)
    return first + tile % in_group % height, tile % in_group // height


def _operands(A, B, m, n, step, TILE_M, TILE_N, TILE_K):
    """Tiles of A and B that one step multiplies for tile (m, n) of A @ B."""
    # Zeros beyond the last k add nothing; rows and columns beyond the edge of Out are computed and not stored.
    ta = ct.load(A, (m, step), (TILE_M, TILE_K), padding_mode=ZERO)
    tb = ct.load(B, (step, n), (TILE_K, TILE_N), padding_mode=ZERO)
    return ta, tb


def _row_product(A, B, ScaleA, ScaleB, m, n, steps, TILE_M, TILE_N, TILE_K):
    """Tile (m, n) of A @ B, summed over a range of steps, times the scales of rows (M, 1) and of columns (1, N)."""
    tacc = ct.zeros((TILE_M, TILE_N), ct.float32)
    for step in range(steps[0], steps[1]):
        if TILE_K > BLOCK:
            tacc = tacc + _long_step(A, B, m, n, step, TILE_M, TILE_N, TILE_K)
        else:
            ta, tb = _operands(A, B, m, n, step, TILE_M, TILE_N, TILE_K)
            tacc = ct.mma(ta, tb, tacc)
    tscale = ct.load(ScaleA, (m, 0), (TILE_M, 1), padding_mode=ZERO)
    return tacc * tscale * ct.load(ScaleB, (0, n), (1, TILE_N), padding_mode=ZERO)


def _long_step(A, B, m, n, step, TILE_M, TILE_N, TILE_K):
    """Tile (m, n) of A @ B for one step, for the caller to add up in fp32, since tensor cores keep some 14 bits."""
    # tileiras would add up by itself, without use_fast_acc, but spills here. It keeps several loads under way only in a
    # loop that carries a sum, so this is one.
    tsum = ct.zeros((TILE_M, TILE_N), ct.float32)
    for k in range(step, step + 1):
        ta, tb = _operands(A, B, m, n, k, TILE_M, TILE_N, TILE_K)
        tsum = ct.mma(ta, tb, tsum, use_fast_acc=True)
    return tsum


def _block_product(A, B, ScaleA, ScaleB, m, n, steps, TILE_M, TILE_N, TILE_K):
    """The same with scales of blocks, (M, steps) and (steps, blocks of columns): a step has its own."""
    # A step is a loop of its own as in _long_step. Its scales are loaded as far ahead as the rest, which would wait for
    # them otherwise.
    tacc = ct.zeros((TILE_M, TILE_N), ct.float32)
    for step in range(steps[0], steps[1]):
        tsum = ct.zeros((TILE_M, TILE_N), ct.float32)
        tscale = ct.zeros((TILE_M, 1), ct.float32)
        for k in range(step, step + 1):
            ta, tb = _operands(A, B, m, n, k, TILE_M, TILE_N, TILE_K)
            tsum = ct.mma(ta, tb, tsum, use_fast_acc=True)
            tscale = ct.load(ScaleA, (m, k), (TILE_M, 1), padding_mode=ZERO, latency=6)
            tscale = tscale * ct.gather(ScaleB, (k, n * TILE_N // BLOCK))
        tacc = tacc + tscale * tsum
    return tacc


@ct.kernel(num_worker_warps=8)
def _scaled_matmul_kernel(
    A,
    B,
    ScaleA,
    ScaleB,
    Out,
    tiles: int,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILE_K: ConstInt,
    PERSISTENT: ConstBool,
):
    """Out (M, N) = A @ B with scales of rows and columns, one tile to a block or, where PERSISTENT, several."""
    tiles_m = ct.num_tiles(Out, 0, (TILE_M, TILE_N))
    tiles_n = ct.num_tiles(Out, 1, (TILE_M, TILE_N))
    steps = (0, ct.num_tiles(A, 1, (TILE_M, TILE_K)))

    def compute(tile):
        m, n = _position(tile, tiles_m, tiles_n, GROUP_ROWS // TILE_M)
        tacc = _row_product(A, B, ScaleA, ScaleB, m, n, steps, TILE_M, TILE_N, TILE_K)
        ct.store(Out, (m, n), tacc.astype(Out.dtype))

    if PERSISTENT:
        for tile in range(ct.bid(0), tiles, ct.num_blocks(0)):
            compute(tile)
    else:
        compute(ct.bid(0))


@ct.kernel(num_worker_warps=8)
def _scaled_matmul_block_kernel(
    A,
    B,
    ScaleA,
    ScaleB,
    Out,
    tiles: int,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILE_K: ConstInt,
    PERSISTENT: ConstBool,
):
    """Out (M, N) = A @ B with scales of blocks, one tile to a block or, where PERSISTENT, several."""
    tiles_m = ct.num_tiles(Out, 0, (TILE_M, TILE_N))
    tiles_n = ct.num_tiles(Out, 1, (TILE_M, TILE_N))
    steps = (0, ct.num_tiles(A, 1, (TILE_M, TILE_K)))

    def compute(tile):
        m, n = _position(tile, tiles_m, tiles_n, GROUP_ROWS // TILE_M)
        tacc = _block_product(A, B, ScaleA, ScaleB, m, n, steps, TILE_M, TILE_N, TILE_K)
        ct.store(Out, (m, n), tacc.astype(Out.dtype))

    if PERSISTENT:
        for tile in range(ct.bid(0), tiles, ct.num_blocks(0)):
            compute(tile)
    else:
        compute(ct.bid(0))


@ct.kernel(num_worker_warps=8)
def _scaled_matmul_split_kernel(
    A,
    B,
    ScaleA,
    ScaleB,
    Partial,
    length: int,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILE_K: ConstInt,
    BLOCKS: ConstBool,
):
    """Partial (splits, M, N) = A @ B with either kind of scales, each split summed over `length` steps of its own."""
    tiles_m = ct.num_tiles(Partial, 1, (1, TILE_M, TILE_N))
    tiles_n = ct.num_tiles(Partial, 2, (1, TILE_M, TILE_N))
    split, tile = ct.bid(0) // (tiles_m * tiles_n), ct.bid(0) % (tiles_m * tiles_n)
    m, n = tile // tiles_n, tile % tiles_n
    steps = (split * length, min((split + 1) * length, ct.num_tiles(A, 1, (TILE_M, TILE_K))))
    if BLOCKS:
        tacc = _block_product(A, B, ScaleA, ScaleB, m, n, steps, TILE_M, TILE_N, TILE_K)
    else:
        tacc = _row_product(A, B, ScaleA, ScaleB, m, n, steps, TILE_M, TILE_N, TILE_K)
    ct.store(Partial, (split, m, n), tacc.reshape((1, TILE_M, TILE_N)))


@ct.kernel
def _scaled_matmul_combine_kernel(
    Partial,
    Out,
    TILE_N: ConstInt,
):
    """Out (M, N) = the sum of Partial (splits, M, N) over its splits, one part of a row to a block."""
    tiles_n = ct.num_tiles(Out, 1, (1, TILE_N))
    m, n = ct.bid(0) // tiles_n, ct.bid(0) % tiles_n
    tacc = ct.zeros((1, TILE_N), ct.float32)
    for split in range(Partial.shape[0]):
        tsplit = ct.load(Partial, (split, m, n), (1, 1, TILE_N), padding_mode=ZERO, allow_tma=False)
        tacc = tacc + tsplit.reshape((1, TILE_N))
    ct.store(Out, (m, n), tacc.astype(Out.dtype))


_DTYPES = (torch.float8_e4m3fn,)
_OUT_DTYPES = (torch.bfloat16, torch.float16, torch.float32)
_MOST_TILES = 2**24 - 1  # of one launch, as many as the blocks of a grid
LEAST_STEPS = 8  # of a sum that is split, so that loading and multiplying overlap
MOST_SPLITS = 128
COMBINED = 256  # elements of a row whose parts a block adds up
_FAR = 2**31  # strides from here on are out of reach of a kernel's 32-bit indices


@functools.lru_cache(maxsize=4096)
def _plan(device, itemsize, rows, columns, blocks):
    """Choose (kernel, grid, tiles, constants) for a result of this size and scales of blocks or of rows and columns."""
    properties = torch.cuda.get_device_properties(device)
    for config in _configs(properties, itemsize):
        tiles = ct.cdiv(rows, config.tile[0]) * ct.cdiv(columns, config.tile[1])
        if rows <= config.most_rows and config.suits(properties.multi_processor_count, rows, tiles):
            break
    persistent = config.persistent or tiles > _MOST_TILES
    grid = min(tiles, properties.multi_processor_count // config.num_ctas) if persistent else tiles
    kernel, step = (config.block_kernel, BLOCK) if blocks else (config.kernel, config.tile[2])
    return kernel, (grid,), tiles, (*config.tile[:2], step, persistent)


def _configs(properties, itemsize):
    """The row of the table for a device."""
    generations = CONFIGS[itemsize]
    return generations[max(major for major in generations if major <= properties.major)]


@functools.lru_cache(maxsize=4096)
def _splits(device, itemsize, rows, columns, terms):
    """Choose (tile, tiles, splits, steps of each); there is one split unless sums are long and tiles too few."""
    properties = torch.cuda.get_device_properties(device)
    *_, last = configs = _configs(properties, itemsize)
    single = (config for config in configs if max(config.tile) <= 128 and rows <= config.most_rows)
    tile = next((c.tile for c in single if c.tile[0] < 2 * rows and c.tile[1] < 2 * columns), last.tile)
    tiles, fewest = (ct.cdiv(rows, m) * ct.cdiv(columns, n) for m, n, _ in (tile, last.tile))
    steps = ct.cdiv(terms, tile[2])
    splits = min(properties.multi_processor_count // tiles, steps // LEAST_STEPS, MOST_SPLITS)
    if splits < 2 or 2 * fewest > properties.multi_processor_count:
        return tile, tiles, 1, steps
    length = ct.cdiv(steps, splits)
    return tile, tiles, ct.cdiv(steps, length), length


def _check_operands(a, **others):
    """Require tensors on one CUDA device: b of the dtype of a, scales in fp32, what is added of a dtype of results."""
    if not isinstance(a, torch.Tensor) or a.dtype not in _DTYPES:
        found = getattr(a, "dtype", type(a).__name__)
        raise TypeError(f"a is {found}; it must be a tensor of float8_e4m3fn")
    if not a.is_cuda:
        raise ValueError(f"a is on {a.device}; it must be on a CUDA device")
    dtypes = {"b": (a.dtype,), "scale_a": (torch.float32,), "scale_b": (torch.float32,)}
    for name, x in others.items():
        wanted = dtypes.get(name, _OUT_DTYPES)
        if not isinstance(x, torch.Tensor) or x.dtype not in wanted:
            found = getattr(x, "dtype", type(x).__name__)
            raise TypeError(f"{name} is {found}; it must be a tensor of {' or '.join(str(d) for d in wanted)}")
        if x.device != a.device:
            raise ValueError(f"{name} is on {x.device}; it must be on {a.device}, as a is")


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


def _overruns(out):
    """Whether TMA, which stores 16 bytes at a time, would write beside `out`."""
    unit = 16 // out.element_size()  # elements in 16 bytes
    axes = {step: n for n, step in zip(out.shape, out.stride(), strict=True) if n > 1}
    length = axes.pop(1, 0)  # of a row; one of a single element is stored without TMA
    return length % unit > 0 and out.data_ptr() % 16 == 0 and all(step % unit == 0 for step in axes)


def _scales(scale_a, scale_b, rows, columns, terms):
    """Return the scales, as (M, 1) and (1, N) unless they are of blocks, and whether they are."""
    given, shapes = (scale_a, scale_b), ((rows, 1), (1, columns))
    if all(x.numel() == 1 or x.shape == shape for x, shape in zip(given, shapes, strict=True)):
        scales = (x.reshape((1, 1) if x.numel() == 1 else x.shape) for x in given)
        return *(x.expand(shape) for x, shape in zip(scales, shapes, strict=True)), False
    steps = ct.cdiv(terms, BLOCK)
    blocks = (rows, steps), (steps, ct.cdiv(columns, BLOCK))
    if (scale_a.shape, scale_b.shape) == blocks:
        return scale_a, scale_b, True
    found = f"scale_a has shape {tuple(scale_a.shape)} and scale_b {tuple(scale_b.shape)}"
    raise ValueError(f"{found}; they must have one element each or be {shapes}, or be {blocks}")


def _launch(rows, columns, blocks, arrays, rest):
    """Launch on (A, B, ScaleA, ScaleB, ..., Out) and what the epilogue needs besides."""
    A, B, ScaleA, ScaleB, *others = arrays
    device, itemsize = A.device, A.element_size()
    kernel, grid, tiles, constants = _plan(device, itemsize, rows, columns, blocks)
    tile, parts, splits, length = _splits(device, itemsize, rows, columns, A.shape[1])
    with torch.cuda.device(device):
        stream = torch.cuda.current_stream(device)
        if splits == 1:
            ct.launch(stream, grid, kernel, (*arrays, *rest, tiles, *constants))
            return
        partial = torch.empty((splits, rows, columns), dtype=torch.float32, device=device)
        kernel = _scaled_matmul_split_kernel
        ct.launch(stream, (parts * splits,), kernel, (A, B, ScaleA, ScaleB, partial, length, *tile, blocks))
        kernel = _scaled_matmul_combine_kernel
        width = min(COMBINED, 1 << (columns - 1).bit_length())
        ct.launch(stream, (rows * ct.cdiv(columns, width),), kernel, (partial, *others, *rest, width))


@register_impl("scaled_matmul", backend="cutile")
def scaled_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    out_dtype: torch.dtype = torch.bfloat16,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Multiply matrices of 8-bit floats and their scales: a @ b in fp32."""
    if kwargs:
        raise TypeError(f"scaled_matmul got unexpected arguments: {', '.join(kwargs)}")
    if out_dtype not in _OUT_DTYPES:
        raise TypeError(f"out_dtype is {out_dtype}; it must be torch.bfloat16, torch.float16 or torch.float32")
    _check_operands(a, b=b, scale_a=scale_a, scale_b=scale_b)
    if a.ndim != 2:
        raise ValueError(f"a has shape {tuple(a.shape)}; it must be (M, K)")
    if b.ndim != 2 or b.shape[0] != a.shape[1]:
        raise ValueError(f"b has shape {tuple(b.shape)} beside a {tuple(a.shape)}; it must be (K, N)")
    shape = a.shape[0], b.shape[1]
    scale_a, scale_b, blocks = _scales(scale_a, scale_b, *shape, a.shape[1])
    if out is None:
        out = torch.empty(shape, dtype=out_dtype, device=a.device)
        direct = True
    elif out.shape != shape or out.dtype != out_dtype or out.device != a.device:
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {out_dtype} on {a.device}")
    else:
        direct = max(out.stride()) < _FAR and not _overruns(out)
    major, minor = torch.cuda.get_device_capability(a.device)
    if major < 9:
        raise NotImplementedError(f"products of {a.dtype} need compute capability 9.0; the GPU has {major}.{minor}")
    if out.numel() == 0:
        return out
    if a.shape[1] == 0:  # the sum of nothing is zero, as is the product of zeros
        a, b = a.new_zeros((shape[0], 1)), b.new_zeros((1, shape[1]))
        one = torch.ones((1, 1), device=a.device)
        scale_a, scale_b, blocks = one.expand(shape[0], 1), one.expand(1, shape[1]), False
    tensors = (a, b, scale_a, scale_b)
    if any(t.untyped_storage().data_ptr() == out.untyped_storage().data_ptr() for t in tensors):
        direct = False  # an operand shares its memory
    result = out if direct else torch.empty(shape, dtype=out_dtype, device=a.device)
    if blocks and shape[0] >= BLOCK:  # by columns, so that TMA reads those of a step: from so many rows on it pays
        scale_a = _readable(scale_a.mT.contiguous()).mT
    arrays = (_readable(a), _readable(b), scale_a, scale_b, result)
    _launch(*shape, blocks, arrays, ())
    if not direct:
        out.copy_(result)
    return out
