"""cuTile backend of conv2d."""

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


@dataclass(frozen=True)
class _Config:
    """A tile (positions, channels of the result, channels of x), and how its kernel runs."""

    tile: tuple[int, int, int]
    num_ctas: int = 1  # blocks that share a tile
    persistent: bool = False  # one wave of blocks, each of which loads its next tile while it stores the last

    @functools.cached_property
    def kernel(self):
        kernel = _conv2d_kernel
        return kernel.replace_hints(num_ctas=self.num_ctas)

    def suits(self, multiprocessors, channels, tiles):
        """Whether nearly all multiprocessors are busy with tiles that are at least half full."""
        waves = tiles * self.num_ctas / multiprocessors
        return self.tile[1] < 2 * channels and waves >= (2 if self.persistent else 0.9)


# By bytes of an element and the first major compute capability that they are for: the first that suits is taken, else
# the last. Chosen by the registers that they need.
CONFIGS = {
    2: {
        8: (_Config((128, 128, 32)), _Config((64, 64, 32))),
        9: (
            _Config((256, 128, 64), persistent=True),
            _Config((128, 256, 64)),
            _Config((128, 128, 64)),
            _Config((256, 64, 64), persistent=True),
            _Config((256, 64, 64)),
            _Config((128, 64, 64)),
            _Config((64, 64, 64)),
        ),
        10: (_Config((128, 128, 64)), _Config((128, 64, 64)), _Config((64, 64, 64))),
        12: (_Config((128, 128, 64)), _Config((64, 64, 64))),
    },
    4: {8: (_Config((64, 64, 16)),), 9: (_Config((128, 128, 8)), _Config((64, 64, 16)))},
}
MOVED = 4096  # elements that a block copies where x must be padded
SIDE = 64  # of these along the rows of the copy, where rows become columns
DEPTHWISE_TILE = (8, 8, 64)  # rows, columns and channels of a block where each channel has a filter of its own
DEPTHWISE_BYTES, DEPTHWISE_ROWS = 4096, 14  # of a row of such a block, and rows, where those of a filter are neighbours


@ct.kernel
def _conv2d_move_kernel(
    X: ct.IndexedWithInt64,
    Target: ct.IndexedWithInt64,
    before: tuple[int, ...],
    CHANNELS_LAST: ConstBool,
    TILE_W: ConstInt,
    TILE_C: ConstInt,
):
    """Target (N, H, W, C) = X moved by `before`, with zeros around it."""
    tiles_w = ct.num_tiles(Target, 2, (1, 1, TILE_W, TILE_C))
    tiles_c = ct.num_tiles(Target, 3, (1, 1, TILE_W, TILE_C))
    line, tile = ct.bid(0) // (tiles_w * tiles_c), ct.bid(0) % (tiles_w * tiles_c)
    w, c = tile // tiles_c, tile % tiles_c
    n, h = line // Target.shape[1], line % Target.shape[1]

    # What is outside of X, also before its start, is read as zero.
    x = w * TILE_W - before[1] + ct.arange(TILE_W, dtype=ct.int32)
    channels = c * TILE_C + ct.arange(TILE_C, dtype=ct.int32)
    if CHANNELS_LAST:
        tx = ct.gather(X, (n, h - before[0], x[:, None], channels[None, :]))
    else:  # neighbours in memory are neighbours along W
        tx = ct.gather(X, (n, h - before[0], x[None, :], channels[:, None])).transpose()
    ct.store(Target, (n, h, w, c), tx.reshape((1, 1, TILE_W, TILE_C)))


@ct.kernel(num_worker_warps=4, occupancy=ct.ByTarget(sm_90=6, default=4))
def _conv2d_transpose_kernel(X, Target, TILE: ct.Constant):
    """Target (N, rows, columns) = X, whose columns are contiguous."""
    rows, columns = ct.num_tiles(Target, 1, TILE), ct.num_tiles(Target, 2, TILE)
    tile, column = ct.bid(0) // columns, ct.bid(0) % columns
    index = (tile // rows, tile % rows, column)
    ct.store(Target, index, ct.load(X, index, TILE, padding_mode=ZERO))


@ct.kernel(num_worker_warps=8)
def _conv2d_kernel(
    X,
    Weight,
    Out,
    tiles: int,
    KERNEL: ct.Constant,
    STRIDE: ct.Constant,
    DILATION: ct.Constant,
    BEFORE: ct.Constant,
    TILE: ct.Constant,
    TILE_O: ConstInt,
    TILE_C: ConstInt,
    PERSISTENT: ConstBool,
):
    """Convolve X, channels last, one tile to a block or, where PERSISTENT, several.

    Tiles of X may begin BEFORE rows and columns in front of it, and end behind it: they have the zeros of the padding.
    X is (N, H / stride, stride, W / stride, stride * C), Weight (groups, O, taps, C), Out (N, H, W, groups, O).
    """
    TILE_N, TILE_H, TILE_W = TILE
    KERNEL_H, KERNEL_W = KERNEL
    STRIDE_H, STRIDE_W = STRIDE
    TAPS = KERNEL_H * KERNEL_W
    TILE_OUT = (TILE_N, TILE_H, TILE_W, 1, TILE_O)
    tiles_n, tiles_h = ct.num_tiles(Out, 0, TILE_OUT), ct.num_tiles(Out, 1, TILE_OUT)
    tiles_w, tiles_o = ct.num_tiles(Out, 2, TILE_OUT), ct.num_tiles(Out, 4, TILE_OUT)
    groups = Out.shape[3]
    # Neighbouring taps read overlapping tiles of X.
    windows = X.tiled_view((TILE_N, TILE_H, 1, TILE_W, TILE_C), padding_mode=ZERO, traversal_steps=(1, 1, 1, 1, TILE_C))
    steps = ct.cdiv(Weight.shape[3], TILE_C)

    def compute(tile):
        tile, o = tile // tiles_o, tile % tiles_o
        tile, w = tile // tiles_w, tile % tiles_w
        tile, h = tile // tiles_h, tile % tiles_h
        g, n = tile // tiles_n, tile % tiles_n

        tacc = ct.zeros((TILE_N * TILE_H * TILE_W, TILE_O), ct.float32)
        for step in range(TAPS * steps):
            tap, c = step // steps, step % steps
            y, x = tap // KERNEL_W * DILATION[0] - BEFORE[0], tap % KERNEL_W * DILATION[1] - BEFORE[1]
            row, column = h * TILE_H + y // STRIDE_H, w * TILE_W + x // STRIDE_W
            channel = (x % STRIDE_W * groups + g) * steps + c
            tx = windows.load((n * TILE_N, row, y % STRIDE_H, column, channel))
            tx = tx.reshape((TILE_N * TILE_H * TILE_W, TILE_C))
            tweight = ct.load(Weight, (g, o, tap, c), (1, TILE_O, 1, TILE_C), padding_mode=ZERO)
            tacc = ct.mma(tx, tweight.reshape((TILE_O, TILE_C)).transpose(), tacc)

        ct.store(Out, (n, h, w, g, o), tacc.astype(Out.dtype).reshape(TILE_OUT))

    if PERSISTENT:
        for tile in range(ct.bid(0), tiles, ct.num_blocks(0)):
            compute(tile)
    else:
        compute(ct.bid(0))


@ct.kernel(occupancy=4)
def _conv2d_depthwise_kernel(
    X: ct.IndexedWithInt64,
    Weight,
    Out: ct.IndexedWithInt64,
    BEFORE: ct.Constant,
    KERNEL: ct.Constant,
    STRIDE: ct.Constant,
    DILATION: ct.Constant,
    TILE: ct.Constant,
):
    """Convolve each channel of X (N, H, W, C) with a filter of its own, Weight (taps, C)."""
    TILE_H, TILE_W, TILE_C = TILE
    KERNEL_H, KERNEL_W = KERNEL
    TAP_ROWS = ct.static_eval(KERNEL_H if KERNEL_H * KERNEL_W <= 9 else 1)  # more taps at once would spill
    # Only places in memory need more than 32 bits.
    height, width, count = ct.int32(X.shape[1]), ct.int32(X.shape[2]), ct.int32(X.shape[3])
    out_height, out_width = ct.int32(Out.shape[1]), ct.int32(Out.shape[2])
    tiles_h, tiles_w, tiles_c = ct.cdiv(out_height, TILE_H), ct.cdiv(out_width, TILE_W), ct.cdiv(count, TILE_C)
    tile, c = ct.bid(0) // tiles_c, ct.bid(0) % tiles_c
    tile, w = tile // tiles_w, tile % tiles_w
    n, h = tile // tiles_h, tile % tiles_h
    row = (h * TILE_H + ct.arange(TILE_H, dtype=ct.int32))[:, None, None]
    columns = (w * TILE_W + ct.arange(TILE_W, dtype=ct.int32))[None, :, None]
    channels = (c * TILE_C + ct.arange(TILE_C, dtype=ct.int32))[None, None, :]

    # Masks that are known before the loads leave no branches around them.
    known = channels < count
    tacc = ct.zeros(TILE, ct.float32)
    for first in range(0, KERNEL_H, TAP_ROWS):
        for tap in ct.static_iter(range(TAP_ROWS * KERNEL_W)):
            y = row * STRIDE[0] + ((first + tap // KERNEL_W) * DILATION[0] - BEFORE[0])
            x = columns * STRIDE[1] + (tap % KERNEL_W * DILATION[1] - BEFORE[1])
            inside = known & (y >= 0) & (y < height) & (x >= 0) & (x < width)
            tx = ct.gather(X, (n, y, x, channels), mask=inside, padding_value=0, check_bounds=False)
            place = (first * KERNEL_W + tap, c)
            tweight = ct.load(Weight, place, (1, TILE_C), padding_mode=ZERO, allow_tma=False)[None]
            tacc = tacc + tx.astype(ct.float32) * tweight

    place = (n, row, columns, channels)
    stored = known & (row < out_height) & (columns < out_width)
    ct.scatter(Out, place, tacc.astype(Out.dtype), mask=stored, check_bounds=False)


@ct.kernel(occupancy=2)
def _conv2d_depthwise_rows_kernel(
    X: ct.IndexedWithInt64,
    Weight,
    Out: ct.IndexedWithInt64,
    rows: int,
    BEFORE: ct.Constant,
    KERNEL: ct.Constant,
    STRIDE: ct.Constant,
    DILATION: ct.Constant,
    TILE: ct.Constant,
):
    """The same for filters whose few rows are neighbours, Weight (C, taps): each row of X is loaded once for them."""
    TILE_W, TILE_C = TILE
    KERNEL_H, KERNEL_W = KERNEL
    CENTER = KERNEL_W // 2
    # Only places in memory need more than 32 bits.
    height, width, count = ct.int32(X.shape[1]), ct.int32(X.shape[2]), ct.int32(X.shape[3])
    out_height, out_width = ct.int32(Out.shape[1]), ct.int32(Out.shape[2])
    tiles_h, tiles_w, tiles_c = ct.cdiv(out_height, rows), ct.cdiv(out_width, TILE_W), ct.cdiv(count, TILE_C)
    tile, c = ct.bid(0) // tiles_c, ct.bid(0) % tiles_c
    tile, w = tile // tiles_w, tile % tiles_w
    n, first = tile // tiles_h, tile % tiles_h * rows
    columns = (w * TILE_W + ct.arange(TILE_W, dtype=ct.int32))[:, None]
    channels = (c * TILE_C + ct.arange(TILE_C, dtype=ct.int32))[None, :]
    known = channels < count

    def load(row, tap):
        y = row + (KERNEL_H - 1 - BEFORE[0])
        x = columns * STRIDE[1] + (tap * DILATION[1] - BEFORE[1])
        inside = known & (y >= 0) & (y < height) & (x >= 0) & (x < width)
        return ct.gather(X, (n, y, x, channels), mask=inside, padding_value=0, check_bounds=False)

    def load_sides(row):
        sides = ()
        for tap in ct.static_iter(range(KERNEL_W)):
            if ct.static_eval(tap != CENTER):
                sides = (*sides, load(row, tap))
        return sides

    # Rows are on their way well before they are used; the columns beside their own are those of other threads then.
    row = first - (KERNEL_H - 1)
    centers = (load(row, CENTER), load(row + 1, CENTER), load(row + 2, CENTER))
    taps = ()
    for tap in ct.static_iter(range(KERNEL_H * KERNEL_W)):
        tweight = ct.gather(Weight, (channels, tap), mask=known, padding_value=0, check_bounds=False)
        taps = (*taps, tweight.astype(ct.float32))
    sides = load_sides(row)
    sums = ()  # of the rows of the result that the next row of X reaches, too
    for _ in ct.static_iter(range(KERNEL_H - 1)):
        sums = (*sums, ct.zeros(TILE, ct.float32))
    for row in range(first - (KERNEL_H - 1), ct.minimum(first + rows, out_height)):
        line = ()
        for tx in ct.static_iter((*sides[:CENTER], centers[0], *sides[CENTER:])):
            line = (*line, tx.astype(ct.float32))
        centers = (*centers[1:], load(row + 3, CENTER))
        sides = load_sides(row + 1)
        reached = ()
        for i in ct.static_iter(range(KERNEL_H)):
            tacc = line[0] * taps[i * KERNEL_W]
            if ct.static_eval(i > 0):
                tacc = tacc + sums[i - 1]
            for column in ct.static_iter(range(1, KERNEL_W)):
                tacc = tacc + line[column] * taps[i * KERNEL_W + column]
            reached = (*reached, tacc)
        sums = reached[: KERNEL_H - 1]
        place = (n, row, columns, channels)
        stored = known & (columns < out_width) & (row >= first)
        ct.scatter(Out, place, tacc.astype(Out.dtype), mask=stored, check_bounds=False)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_RANK = 2  # dimensions of an image
_FAR = 2**31  # strides from here on are out of reach of a kernel's 32-bit indices
_MOST_LINES = 2**22  # of images in one launch, so that a grid holds the tiles of all


@dataclass(frozen=True)
class _Geometry:
    """How a filter moves over an image; one number for each of H, W."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]  # zeros in front of the first element
    sizes: tuple[int, ...]  # of the result
    needed: tuple[int, ...]  # of the padded image


def _per_axis(name, value, least):
    """One whole number for each axis of an image."""
    numbers = (value,) * _RANK if isinstance(value, int) else tuple(value)
    if len(numbers) != _RANK or not all(isinstance(number, int) and number >= least for number in numbers):
        raise ValueError(f"{name} is {value}; it must be a whole number of at least {least}, or {_RANK} of them")
    return numbers


@functools.lru_cache(maxsize=4096)
def _geometry(shape, filters, stride, padding, dilation, groups):
    """Check the shapes of x and weight, and the options; raises ValueError."""
    if len(shape) != 4:
        raise ValueError(f"x has shape {shape}; it must be (N, C, H, W)")
    if not isinstance(groups, int) or not 0 < groups <= shape[1] or shape[1] % groups:
        raise ValueError(f"groups is {groups}; it must divide the {shape[1]} channels of x")
    if len(filters) != 4 or filters[1] * groups != shape[1] or filters[0] % groups:
        found = f"{filters} beside x {shape} in {groups} groups"
        raise ValueError(f"weight has shape {found}; it must be (O, C / groups, KH, KW), O a multiple of groups")
    stride, dilation = _per_axis("stride", stride, 1), _per_axis("dilation", dilation, 1)
    spans = [(size - 1) * step for size, step in zip(filters[2:], dilation, strict=True)]
    if padding == "same" and max(stride) == 1:
        padding = [(span // 2, span - span // 2) for span in spans]
    elif isinstance(padding, str) and padding != "valid":
        found = f"{padding!r} beside stride {stride}"
        raise ValueError(f"padding is {found}; it must be whole numbers, 'valid', or with stride 1 'same'")
    else:
        padding = [(n, n) for n in _per_axis("padding", 0 if padding == "valid" else padding, 0)]
    before, after = zip(*padding, strict=True)
    whole = [size + first + last for size, first, last in zip(shape[2:], before, after, strict=True)]
    sizes = tuple((size - span - 1) // step + 1 for size, span, step in zip(whole, spans, stride, strict=True))
    if min(sizes) < 1 or min(filters[2:]) < 1:
        raise ValueError(f"weight has shape {filters} beside x {shape}; its filters must fit into x with the padding")
    needed = tuple((size - 1) * step + span + 1 for size, step, span in zip(sizes, stride, spans, strict=True))
    return _Geometry(filters[2:], stride, dilation, before, sizes, needed)


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


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


def _window(positions, images, rows, columns, suits):
    """Split a tile of so many positions into (images, rows, columns), few of them beyond the edges, if any suits."""
    windows = [
        (positions >> (h + w), 1 << h, 1 << w)
        for w in reversed(range(min(positions, _power_of_two(columns)).bit_length()))
        for h in range(min(positions >> w, _power_of_two(rows)).bit_length())
        if positions >> (h + w) <= _power_of_two(images)
    ]
    width = min(positions, _power_of_two(columns))
    windows = windows or [(1, positions // width, width)]
    windows = [window for window in windows if suits(window)]
    return min(windows, key=lambda window: _tiles(window, (images, rows, columns)), default=None)


def _tiles(tile, shape):
    """Tiles that cover an array of this shape."""
    return math.prod(ct.cdiv(size, step) for size, step in zip(shape, tile, strict=True))


@dataclass(frozen=True)
class _Plan:
    """How a convolution becomes a product of matrices."""

    kernel: Any  # with its hints
    blocks: int
    channels: int  # of a group, padded
    padded: tuple[int, ...] | None  # image (H, W, C) that x must be copied into
    windows: tuple[int, ...]  # the same as the kernel reads it, (H / stride, stride, W / stride, stride * C)
    filters: tuple[int, ...]  # (groups, O, taps, C)
    folded: bool  # whether all taps of a row are one
    constants: tuple[Any, ...]


def _reads_inside(geometry, image, window):
    """Whether all tiles that are read of an image (H, W) without its padding have elements inside, as they must."""
    zeros, steps, gaps = geometry.before[-2:], geometry.stride[-2:], geometry.dilation[-2:]
    axes = zip(image, window[1:], geometry.kernel[-2:], zeros, steps, gaps, geometry.sizes[-2:], strict=True)
    for size, tile, taps, before, step, gap, results in axes:
        last = (ct.cdiv(results, tile) - 1) * tile + ((taps - 1) * gap - before) // step
        if -before // step <= -tile or last >= size // step:
            return False
    return True


def _has_all(geometry, image, folded):
    """Whether rows and columns of an image (H, W) make whole strides, or those that do not are not read."""
    axes = zip(image, geometry.before[-2:], geometry.stride[-2:], geometry.needed[-2:], strict=True)
    whole = all(size % step == 0 or end - before <= size // step * step for size, before, step, end in axes)
    return whole and not (folded and (geometry.before[-1] or geometry.needed[-1] > image[-1]))


@functools.lru_cache(maxsize=4096)
def _plan(device, itemsize, images, in_channels, out_channels, groups, geometry, image):
    """Choose tiles, hints and arrays for a convolution of this size; channels are those of one group.

    An image (H, W) is read where it is, None stands for a copy with padding. Returns None where it must be one.
    """
    *_, step_h, step_w = strides = geometry.stride
    *outer, kernel_w = taps = geometry.kernel
    # The taps of a row are neighbours in memory: where there are few channels, they make one tap with more of them.
    folded = groups == 1 and geometry.dilation[-1] == 1 and 1 < kernel_w <= 64 // in_channels
    unit = 16 // itemsize  # elements in 16 bytes, of which TMA wants the strides to be multiples
    step = unit // math.gcd(unit, step_w) if folded else unit
    terms = _multiple(in_channels, step) * (kernel_w if folded else 1)

    def suits(window):
        return image is None or _reads_inside(geometry, image, window)

    properties = torch.cuda.get_device_properties(device)
    generations = CONFIGS[itemsize]
    *depth, rows, columns = geometry.sizes
    chosen = None
    for config in generations[max(major for major in generations if major <= properties.major)]:
        positions, tile_o, _ = config.tile
        window = _window(positions, images, rows, columns, suits)
        if window is None:
            continue
        tiles = _tiles((*window, tile_o), (images * math.prod(depth), rows, columns, out_channels)) * groups
        chosen = config, window, tiles
        if config.suits(properties.multi_processor_count, out_channels, tiles):
            break
    if chosen is None or (image and not _has_all(geometry, image, folded)):
        return None
    config, window, tiles = chosen
    _, tile_o, tile_c = config.tile
    tile_c = max(32 // itemsize, min(tile_c, _power_of_two(terms)))
    blocks = min(tiles, properties.multi_processor_count // config.num_ctas) if config.persistent else tiles

    if groups > 1 or (step_w > 1 and not folded):
        step = tile_c  # no tile has channels of two groups, or of two columns
    channels = _multiple(in_channels, step)
    if image and (channels != in_channels or channels % unit):
        return None
    *depth, rows, columns = geometry.needed
    rows, columns = image or (_multiple(rows, step_h), _multiple(columns, step_w))
    filters = (groups, out_channels, math.prod(taps), channels)
    windows = (rows // step_h, step_h, columns // step_w, step_w * groups * channels)
    if folded:
        filters = (1, out_channels, math.prod(outer), _multiple(terms, unit))
        windows = (*windows[:2], geometry.sizes[-1], terms)
        taps, strides = (*outer, 1), (*strides[:-1], 1)
    before = geometry.before[-2:] if image else (0, 0)
    constants = (tiles, taps, strides, geometry.dilation, before, window, tile_o, tile_c, config.persistent)
    padded = None if image else (*depth, rows, columns, groups * channels)
    return _Plan(config.kernel, blocks, channels, padded, windows, filters, folded, constants)


def _multiple(n, step):
    """Smallest multiple of `step` that is at least `n`."""
    return ct.cdiv(n, step) * step


def _last(x):
    """See x (N, C, H, W) as (N, H, W, C)."""
    return x.permute(0, 2, 3, 1)


def _widened(x, size):
    """Return x with zeros at the end of its last dimension, or x itself where that has the size."""
    if x.shape[-1] == size:
        return x
    wide = x.new_zeros((*x.shape[:-1], size))
    wide[..., : x.shape[-1]] = x
    return wide


def _shares_memory(out, *operands):
    """Whether writing the result could change an operand that is still read."""
    return any(x.untyped_storage().data_ptr() == out.untyped_storage().data_ptr() for x in operands)


def _overruns(out):
    """Whether TMA, which stores 16 bytes at a time, would write beside `out`."""
    unit = 16 // out.element_size()  # elements in 16 bytes
    axes = {step: n for n, step in zip(out.shape, out.stride(), strict=True) if n > 1}
    length = axes.pop(1, 0)  # of a row; one of a single element is stored without TMA
    return length % unit > 0 and out.data_ptr() % 16 == 0 and all(step % unit == 0 for step in axes)


def _move(stream, x, target, before):
    """Copy x (N, H, W, C) into the target, `before` elements from its start, with zeros around it."""
    *lines, columns, channels = target.shape
    tile_c = min(128, _power_of_two(channels))
    tile_w = min(MOVED // tile_c, _power_of_two(columns))
    blocks = math.prod(lines) * ct.cdiv(columns, tile_w) * ct.cdiv(channels, tile_c)
    arguments = (x, target, before, x.stride(-1) == 1, tile_w, tile_c)
    kernel = _conv2d_move_kernel
    ct.launch(stream, (blocks,), kernel, arguments)
    return target


def _transpose(stream, x, target):
    """Copy each matrix of x (N, columns, rows) to the target (N, rows, columns)."""
    images, rows, columns = target.shape
    if images == 1:  # a stride that is never used may be beyond 32 bits
        x, target = x[0][None], target[0][None]
    elif images * max(x.stride(0), target.stride(0)) >= _FAR:
        for halves in zip(x.tensor_split(2), target.tensor_split(2), strict=True):
            _transpose(stream, *halves)
        return
    side = min(SIDE, _power_of_two(columns))
    length = min(MOVED // side, _power_of_two(rows))
    tile = (min(MOVED // (side * length), _power_of_two(images)), length, side)
    kernel = _conv2d_transpose_kernel
    ct.launch(stream, (_tiles(tile, target.shape),), kernel, (x.mT, target, tile))


def _channels_first(x):
    """Whether images x (N, C, H, W) can be transposed: they are contiguous, and 32 bits reach all of one."""
    return x.stride(1) != 1 < x.shape[1] and x[0].is_contiguous() and x[0].numel() < _FAR


def _transposed(stream, x):
    """Return a copy of x (N, C, H, W) as (N, H, W, C)."""
    images = x.new_empty((x.shape[0], *x.shape[2:], x.shape[1]))
    _transpose(stream, x.flatten(2), images.flatten(1, 2))
    return images


def _readable(x, gapless):
    """Whether TMA, which is many times as fast, can read x (N, H, W, C), if need be with no gaps between columns."""
    unit = 16 // x.element_size()
    aligned = x.data_ptr() % 16 == 0 and all(n % unit == 0 for n in x.stride()[:-1]) and max(x.stride()[1:]) < _FAR
    gapless = x.stride(-1) == 1 and (not gapless or x.stride(-2) == x.shape[-1])
    return aligned and gapless


def _padded(stream, x, plan, before):
    """Return a copy of x (N, H, W, C) with its padding, and with zeros behind the channels of each group."""
    groups = plan.filters[0]
    if groups > 1:
        x = _widened(x.unflatten(-1, (groups, -1)), plan.channels).flatten(-2)
    return _move(stream, x, x.new_empty((x.shape[0], *plan.padded)), before)


def _windows(x, plan, geometry):
    """See x (N, H, W, C), with its padding, as the kernel reads it."""
    *_, step_h, step_w = geometry.stride
    *_, image, row, column, _ = x.stride()
    count = x.shape[0]
    image = image if count > 1 else step_h * row  # a stride that is never used may be beyond 32 bits
    return x.as_strided((count, *plan.windows), (image, step_h * row, row, step_w * column, 1))


def _filters(filters, plan):
    """Return filters (O, H, W, C) as (groups, O, taps, C), with the channels of the windows."""
    if plan.folded:
        *outer, kernel_w, channels = filters.shape
        wide = filters.new_zeros((*outer, plan.filters[-1]))
        taps = wide[..., : kernel_w * plan.channels].unflatten(-1, (kernel_w, -1))
        taps[..., :channels] = filters
        return wide.view(plan.filters)
    filters = _widened(filters, plan.channels)
    if filters.stride(-1) != 1:  # TMA cannot read them so
        filters = filters.contiguous()
    filters = filters.reshape(plan.filters)
    return filters if filters.data_ptr() % 16 == 0 else filters.clone()


def _grouped(array, groups):
    """See an array of the shape of the result as (N, H, W, groups, O)."""
    images, channels, rows, columns = array.shape
    image, channel, row, column = array.stride()
    own = channels // groups
    image = image if images > 1 else row  # a stride that is never used may be beyond 32 bits
    return array.as_strided((images, rows, columns, groups, own), (image, row, column, own * channel, channel))


def _run(out, result, x, weight, *arguments):
    """Convolve x into the result, and write that to `out` where it is another tensor."""
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        _convolve(stream, x, weight, *arguments)
        if out is not result and _channels_first(out):
            _transpose(stream, result.flatten(2).mT, out.flatten(2))
        elif out is not result:
            out.copy_(result)


@functools.lru_cache(maxsize=4096)
def _depthwise_tile(columns, channels, itemsize):
    """Columns and channels of a tile, so that there are few of them."""
    tiles = [(DEPTHWISE_BYTES // itemsize // size, size) for size in (256, 128, 64, 32)]
    return min(tiles, key=lambda tile: _tiles(tile, (columns, channels)))


def _convolve_depthwise(stream, x, weight, arrays, rest, geometry):
    """Convolve x where each channel has a filter of its own."""
    x = _transposed(stream, x) if _channels_first(x) else _last(x)
    before = geometry.before
    if x.stride(-1) != 1:
        x = _move(stream, x, x.new_empty((x.shape[0], *geometry.needed, x.shape[-1])), before)
        before = (0,) * len(before)
    arrays = [_last(array) for array in arrays]
    *lines, rows, columns, channels = arrays[-1].shape
    if geometry.stride[0] == geometry.dilation[0] == 1 < geometry.kernel[0] and max(geometry.kernel) <= 3:
        tile = _depthwise_tile(columns, channels, x.element_size())
        parts = ct.cdiv(rows, DEPTHWISE_ROWS)
        tiles = math.prod(lines) * parts * _tiles(tile, (columns, channels))
        kernel = _conv2d_depthwise_rows_kernel
        arguments = (x, weight.flatten(1), *arrays, *rest, ct.cdiv(rows, parts))
        constants = (before, geometry.kernel, geometry.stride, geometry.dilation, tile)
        ct.launch(stream, (tiles,), kernel, (*arguments, *constants))
        return
    filters = weight.new_empty((weight[0].numel(), len(weight)), dtype=torch.float32).copy_(weight.flatten(1).mT)
    tiles = math.prod(lines) * _tiles(DEPTHWISE_TILE, (rows, columns, channels))
    kernel = _conv2d_depthwise_kernel
    arguments = (x, filters, *arrays, *rest)
    constants = (before, geometry.kernel, geometry.stride, geometry.dilation, DEPTHWISE_TILE)
    ct.launch(stream, (tiles,), kernel, (*arguments, *constants))


def _convolve(stream, x, weight, arrays, rest, groups, geometry):
    """Convolve x into the last of the arrays, which have its shape, in parts where a kernel's 32 bits do not reach."""
    images, out = x.shape[0], arrays[-1]
    far = max(x.numel(), out.numel()) >= _FAR or images * math.prod(geometry.needed[:-1]) > _MOST_LINES
    if images > 1 and far:
        for x_half, *halves in zip(*(array.tensor_split(2) for array in (x, *arrays)), strict=True):
            _convolve(stream, x_half, weight, halves, rest, groups, geometry)
        return
    if groups == x.shape[1] == out.shape[1]:
        _convolve_depthwise(stream, x, weight, arrays, rest, geometry)
        return
    sizes = (x.device, x.element_size(), images, weight.shape[1], weight.shape[0] // groups, groups, geometry)
    plan = _plan(*sizes, tuple(x.shape[2:]))
    images = _transposed(stream, x) if plan and _channels_first(x) else _last(x)
    if plan is None or not _readable(images, plan.folded or geometry.stride[-1] > 1):
        plan = _plan(*sizes, None)
        images = _padded(stream, images, plan, geometry.before)
    windows = _windows(images, plan, geometry)
    filters = _filters(_last(weight), plan)
    arrays = [_grouped(array, groups) for array in arrays]
    arguments = (windows, filters, *arrays, *rest)
    ct.launch(stream, (plan.blocks,), plan.kernel, (*arguments, *plan.constants))


@register_impl("conv2d", backend="cutile")
def conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] | str = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Convolve images (N, C, H, W)."""
    if kwargs:
        raise TypeError(f"conv2d got unexpected arguments: {', '.join(kwargs)}")
    _check_operands(x=x, weight=weight)
    options = [tuple(option) if isinstance(option, list) else option for option in (stride, padding, dilation)]
    geometry = _geometry(tuple(x.shape), tuple(weight.shape), *options, groups)
    shape = (x.shape[0], weight.shape[0], *geometry.sizes)
    if out is None:
        direct = x.stride(1) == 1 < x.shape[1] and x.is_contiguous(memory_format=torch.channels_last)
        result = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
        out = result if direct else x.new_empty(shape)
    elif out.shape != shape or out.dtype != x.dtype or out.device != x.device:
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {x.dtype} on {x.device}")
    else:
        direct = out.movedim(1, -1).is_contiguous() and not _shares_memory(out, x, weight)
        direct = direct and not _overruns(out[-1:])  # images may be launched one by one
        result = out
        if not direct:
            result = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
    if out.numel() == 0:
        return out
    arrays = [result]
    _run(out, result, x, weight, arrays, (), groups, geometry)
    return out
