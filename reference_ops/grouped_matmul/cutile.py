"""cuTile backend of grouped_matmul."""

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
        kernel = _grouped_matmul_kernel
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


def _bounded(t, rows):
    """Offsets that do not lead out of the array, whatever they are."""
    return ct.minimum(ct.where(t < 0, 0, t), rows).astype(ct.int32)


@ct.kernel
def _grouped_matmul_places_kernel(
    Ends,
    Places,
    rows: int,
    TILE_M: ConstInt,
    GROUPS: ConstInt,
    SLOTS: ConstInt,
):
    """Places (slots, 4): the group, first row and end of each tile in a column of them, and how many there are."""
    groups = ct.arange(GROUPS, dtype=ct.int32)
    # The rows after the last group are one more group, and those beyond it are empty.
    tends = _bounded(ct.gather(Ends, groups, padding_value=rows), rows)
    tstarts = ct.where(groups == 0, 0, _bounded(ct.gather(Ends, groups - 1, padding_value=rows), rows))
    tsizes = ct.maximum(tends - tstarts, 0)
    tuntil = ct.cumsum(ct.cdiv(tsizes, TILE_M), axis=0)  # tiles of the groups up to each
    slots = ct.arange(SLOTS, start=ct.bid(0) * SLOTS, dtype=ct.int32)[:, None]
    tbefore = tuntil[None, :] <= slots  # groups all of whose tiles come before the slot
    tgroup = ct.sum(tbefore.astype(ct.int32), axis=1, keepdims=True)
    tfirst = ct.max(ct.where(tbefore, tuntil[None, :], 0), axis=1, keepdims=True)
    tstart = ct.max(ct.where(tbefore, tends[None, :], 0), axis=1, keepdims=True) + (slots - tfirst) * TILE_M
    tend = ct.min(ct.where(tbefore, rows, tends[None, :]), axis=1, keepdims=True)
    ct.store(Places, (ct.bid(0), 0), tgroup)
    ct.store(Places, (ct.bid(0), 1), tstart)
    ct.store(Places, (ct.bid(0), 2), ct.maximum(tstart, tend))
    ct.store(Places, (ct.bid(0), 3), ct.full((SLOTS, 1), ct.max(tuntil), ct.int32))


@ct.kernel(num_worker_warps=8)
def _grouped_matmul_kernel(
    A,
    B,
    Out,
    Places,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
    TILE_K: ConstInt,
    PERSISTENT: ConstBool,
):
    """Out (M, N) = A @ B of the group of each row, one tile to a block or, where PERSISTENT, several."""
    tiles_m, tiles_n = ct.gather(Places, (0, 3)).item(), ct.num_tiles(Out, 1, (TILE_M, TILE_N))
    tiles = tiles_m * tiles_n

    def compute(tile):
        slot, n = _position(tile, tiles_m, tiles_n, GROUP_ROWS // TILE_M)
        g, end = ct.gather(Places, (slot, 0)).item(), ct.gather(Places, (slot, 2)).item()
        start = ct.gather(Places, (slot, 1)).astype(ct.int64).item()  # a slice multiplies it by the stride as it is
        # No tile crosses the border of a group: rows beyond its end are neither read nor stored.
        rows, results = A.slice(0, start, end), Out.slice(0, start, end)
        # The rows after the last group have no B: nothing is added to their zeros.
        steps = ct.num_tiles(A, 1, (TILE_M, TILE_K)) if g < B.shape[0] else 0
        tacc = ct.zeros((TILE_M, TILE_N), ct.float32)
        for k in range(steps):
            ta = ct.load(rows, (0, k), (TILE_M, TILE_K), padding_mode=ZERO)
            tb = ct.load(B, (g, k, n), (1, TILE_K, TILE_N), padding_mode=ZERO).reshape((TILE_K, TILE_N))
            tacc = ct.mma(ta, tb, tacc)
        ct.store(results, (0, n), tacc.astype(Out.dtype))

    if PERSISTENT:
        for tile in range(ct.bid(0), tiles, ct.num_blocks(0)):
            compute(tile)
    elif ct.bid(0) < tiles:
        compute(ct.bid(0))


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_MOST_TILES = 2**24 - 1  # of one launch, as many as the blocks of a grid
_MOST_GROUPS = 4095  # that one block can look at
LOCATED = 4096  # groups times slots that a block looks at, or so many slots where groups are few:
MOST_SLOTS = 128
_FAR = 2**31  # strides from here on are out of reach of a kernel's 32-bit indices


@functools.lru_cache(maxsize=4096)
def _plan(device, itemsize, groups, rows, columns):
    """Choose (kernel, blocks, slots for tiles in a column, constants), by the size of groups of equal size."""
    properties = torch.cuda.get_device_properties(device)
    size = ct.cdiv(rows, groups)
    for config in _configs(properties, itemsize):
        tiles = groups * ct.cdiv(size, config.tile[0]) * ct.cdiv(columns, config.tile[1])
        if config.num_ctas > 1 and size < 4 * config.tile[0]:
            continue  # too much of tiles as high as these would be beyond the ends of groups
        if size <= config.most_rows and config.suits(properties.multi_processor_count, size, tiles):
            break
    # Each group has at most one tile that is not full, and so have the rows after the last one.
    slots = ct.cdiv(rows, config.tile[0]) + groups
    tiles = slots * ct.cdiv(columns, config.tile[1])
    persistent = config.persistent or tiles > _MOST_TILES
    blocks = min(tiles, properties.multi_processor_count // config.num_ctas) if persistent else tiles
    return config.kernel, blocks, slots, (*config.tile, persistent)


def _configs(properties, itemsize):
    """The row of the table for a device."""
    generations = CONFIGS[itemsize]
    return generations[max(major for major in generations if major <= properties.major)]


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


def _launch(A, B, Out, Ends):
    """Find out where the tiles are, then multiply."""
    device, groups = A.device, len(Ends)
    kernel, blocks, slots, constants = _plan(device, A.element_size(), groups, *Out.shape)
    width = 1 << groups.bit_length()  # the rows after the last group are one more
    height = min(max(LOCATED // width, 1), MOST_SLOTS)
    places = torch.empty((ct.cdiv(slots, height) * height, 4), dtype=torch.int32, device=device)
    with torch.cuda.device(device):
        stream = torch.cuda.current_stream(device)
        locate = _grouped_matmul_places_kernel
        ct.launch(stream, (len(places) // height,), locate, (Ends, places, len(A), constants[0], width, height))
        ct.launch(stream, (blocks,), kernel, (A, B, Out, places, *constants))


@register_impl("grouped_matmul", backend="cutile")
def grouped_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    offsets: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Multiply consecutive groups of rows by a matrix each, as in a mixture of experts."""
    if kwargs:
        raise TypeError(f"grouped_matmul got unexpected arguments: {', '.join(kwargs)}")
    _check_operands(a=a, b=b)
    if not isinstance(offsets, torch.Tensor) or offsets.dtype not in (torch.int32, torch.int64):
        found = getattr(offsets, "dtype", type(offsets).__name__)
        raise TypeError(f"offsets is {found}; it must be a tensor of int32 or int64")
    if offsets.device != a.device:
        raise ValueError(f"offsets is on {offsets.device}; it must be on {a.device}, as a is")
    if a.ndim != 2:
        raise ValueError(f"a has shape {tuple(a.shape)}; it must be (M, K)")
    if b.ndim != 3 or b.shape[1] != a.shape[1]:
        raise ValueError(f"b has shape {tuple(b.shape)} beside a {tuple(a.shape)}; it must be (G, K, N)")
    groups, *size = b.shape
    if math.prod(size) >= _FAR or b.stride(0) >= _FAR:
        raise ValueError(f"matrices of b have {size} elements, {b.stride(0)} apart; fewer than 2**31 are possible")
    if groups > _MOST_GROUPS:
        raise ValueError(f"b has {groups} matrices; at most {_MOST_GROUPS} are possible")
    if offsets.shape not in ((groups,), (groups + 1,)):
        raise ValueError(f"offsets has shape {tuple(offsets.shape)}; it must be ({groups},) or ({groups + 1},)")
    shape = a.shape[0], b.shape[2]
    if out is None:
        out = torch.empty(shape, dtype=a.dtype, device=a.device)
        direct = True
    elif out.shape != shape or out.dtype != a.dtype or out.device != a.device:
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {a.dtype} on {a.device}")
    else:
        direct = max(out.stride()) < _FAR and not _overruns(out)
    if out.numel() == 0:
        return out
    if groups == 0 or a.shape[1] == 0:
        return out.zero_()
    if any(t.untyped_storage().data_ptr() == out.untyped_storage().data_ptr() for t in (a, b, offsets)):
        direct = False  # an operand shares its memory
    result = out if direct else torch.empty(shape, dtype=a.dtype, device=a.device)
    _launch(_readable(a[None])[0], _readable(b), result, offsets[-groups:])
    if not direct:
        out.copy_(result)
    return out
