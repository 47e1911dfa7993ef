"""cuTile backend of conv_transpose2d."""

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
        kernel = _conv_transpose2d_kernel
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
            _Config((128, 256, 64), persistent=True),
            _Config((128, 256, 64)),
            _Config((256, 128, 64), persistent=True),
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


@ct.kernel
def _conv_transpose2d_move_kernel(
    X: ct.IndexedWithInt64,
    Target: ct.IndexedWithInt64,
    before: tuple[int, ...],
    CHANNELS_LAST: ConstBool,
    TILE_W: ConstInt,
    TILE_C: ConstInt,
):
    """Target (N, H, W, C) = X (N, C, H, W) moved by `before`, with zeros around it."""
    tiles_w, tiles_c = ct.cdiv(Target.shape[2], TILE_W), ct.cdiv(Target.shape[3], TILE_C)
    line, tile = ct.bid(0) // (tiles_w * tiles_c), ct.bid(0) % (tiles_w * tiles_c)
    w, c = tile // tiles_c, tile % tiles_c
    n, h = line // Target.shape[1], line % Target.shape[1]

    # What is outside of X, also before its start, is read as zero.
    x = w * TILE_W - before[1] + ct.arange(TILE_W, dtype=ct.int32)
    channels = c * TILE_C + ct.arange(TILE_C, dtype=ct.int32)
    if CHANNELS_LAST:
        tx = ct.gather(X, (n, channels[None, :], h - before[0], x[:, None]))
    else:  # neighbours in memory are neighbours along W
        tx = ct.gather(X, (n, channels[:, None], h - before[0], x[None, :])).transpose()
    ct.store(Target, (n, h, w, c), tx.reshape((1, 1, TILE_W, TILE_C)))


def _taps(start, AXIS):
    """What element `start` of the result, and each one a multiple of the stride behind it, is summed of along an axis.

    Returns the first of its taps, how many they are, and the element of X that meets the first.
    """
    STRIDE, STEP, GAP, KERNEL, INVERSE, BEFORE = AXIS
    place = start + BEFORE
    whole = place // (STRIDE // STEP)
    first = whole * INVERSE % STEP
    if KERNEL % STEP == 0:  # as many for each, which the compiler divides by at once
        count = KERNEL // STEP
    else:
        count = ct.cdiv(KERNEL - first, STEP)
    if STEP < STRIDE:  # no tap meets an element between multiples of a factor that stride and dilation have in common
        count = ct.where(place % (STRIDE // STEP) == 0, count, 0)
    return first, count, (whole - first * GAP) // STEP


@ct.kernel(num_worker_warps=8)
def _conv_transpose2d_kernel(
    X,
    Weight,
    Out: ct.IndexedWithInt64,
    tiles: int,
    AXES: ct.Constant,
    GROUPS: ConstInt,
    TILE: ct.Constant,
    TILE_O: ConstInt,
    TILE_C: ConstInt,
    PERSISTENT: ConstBool,
):
    """Convolve X (N, H, W, groups * C) transposed, one tile to a block or, where PERSISTENT, several.

    Weight is (groups * C, KH, KW, O), Out (N, groups * O, H, W). The elements of a tile of Out are as many
    steps apart as the stride, since the same taps meet X there.
    """
    TILE_N, TILE_H, TILE_W = TILE
    POSITIONS = TILE_N * TILE_H * TILE_W
    AXIS_H, AXIS_W = AXES
    STRIDE_H, STEP_H, GAP_H = AXIS_H[:3]
    STRIDE_W, STEP_W, GAP_W = AXIS_W[:3]
    # Only elements of Out need more than 32 bits.
    channels, steps = ct.int32(Out.shape[1] // GROUPS), ct.cdiv(Weight.shape[0], GROUPS * TILE_C)
    tiles_n, tiles_o = ct.int32(ct.cdiv(Out.shape[0], TILE_N)), ct.cdiv(channels, TILE_O)
    tiles_h = ct.int32(ct.cdiv(Out.shape[2], STRIDE_H * TILE_H))
    tiles_w = ct.int32(ct.cdiv(Out.shape[3], STRIDE_W * TILE_W))
    # Neighbouring taps read overlapping tiles of X.
    TILE_X = (TILE_N, TILE_H, TILE_W, TILE_C)
    windows = X.tiled_view(TILE_X, padding_mode=ZERO, traversal_steps=(TILE_N, 1, 1, TILE_C))

    def compute(tile):
        tile, o = tile // tiles_o, tile % tiles_o
        tile, w = tile // STRIDE_W, tile % STRIDE_W
        tile, h = tile // STRIDE_H, tile % STRIDE_H
        tap_w, taps_w, first_w = _taps(w, AXIS_W)
        tap_h, taps_h, first_h = _taps(h, AXIS_H)
        tile, i = tile // tiles_w, tile % tiles_w * TILE_W
        w, first_w = w + i * STRIDE_W, first_w + i
        tile, i = tile // tiles_h, tile % tiles_h * TILE_H
        h, first_h = h + i * STRIDE_H, first_h + i
        g, n = tile // tiles_n, tile % tiles_n
        terms = taps_h * taps_w * steps
        if h >= Out.shape[2] or w >= Out.shape[3]:
            terms = 0  # such a tile has no elements

        tacc = ct.zeros((POSITIONS, TILE_O), ct.float32)
        for step in range(terms):
            tap, c = step // steps, g * steps + step % steps
            y, x = tap // taps_w, tap % taps_w
            tx = windows.load((n, first_h - y * GAP_H, first_w - x * GAP_W, c))
            place = (c, tap_h + y * STEP_H, tap_w + x * STEP_W, o)
            tweight = ct.load(Weight, place, (TILE_C, 1, 1, TILE_O), padding_mode=ZERO)
            tx, tweight = tx.reshape((POSITIONS, TILE_C)), tweight.reshape((TILE_C, TILE_O))
            tacc = ct.mma(tx, tweight, tacc)

        position = ct.arange(POSITIONS, dtype=ct.int32)[:, None]
        channel = o * TILE_O + ct.arange(TILE_O, dtype=ct.int32)[None, :]
        image = n * TILE_N + position // (TILE_H * TILE_W)
        y = h + position // TILE_W % TILE_H * STRIDE_H
        x = w + position % TILE_W * STRIDE_W
        elements = (image, g * channels + channel, y, x)
        ct.scatter(Out, elements, tacc.astype(Out.dtype), mask=channel < channels)

    if PERSISTENT:
        for tile in range(ct.bid(0), tiles, ct.num_blocks(0)):
            compute(tile)
    else:
        compute(ct.bid(0))


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_RANK = 2  # dimensions of an image
_FAR = 2**31  # what is out of reach of a kernel's 32-bit indices
_MOST_BLOCKS = 2**24 - 1  # of a launch


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


def _multiple(n, step):
    """Smallest multiple of `step` that is at least `n`."""
    return ct.cdiv(n, step) * step


def _per_axis(name, value, least):
    """One whole number for each axis of an image."""
    numbers = (value,) * _RANK if isinstance(value, int) else tuple(value)
    if len(numbers) != _RANK or not all(isinstance(number, int) and number >= least for number in numbers):
        raise ValueError(f"{name} is {value}; it must be a whole number of at least {least}, or {_RANK} of them")
    return numbers


def _axes(shape, filters, stride, padding, output_padding, groups, dilation):
    """Check shapes and options; return the kernel, stride, dilation, padding and size of the result along each axis."""
    if len(shape) != 4:
        raise ValueError(f"x has shape {tuple(shape)}; it must be (N, C, H, W)")
    if not isinstance(groups, int) or not 0 < groups <= shape[1] or shape[1] % groups:
        raise ValueError(f"groups is {groups}; it must divide the {shape[1]} channels of x")
    if len(filters) != 4 or filters[0] != shape[1]:
        found = f"{tuple(filters)} beside x {tuple(shape)}"
        raise ValueError(f"weight has shape {found}; it must be (C, O / groups, KH, KW)")
    stride, dilation = _per_axis("stride", stride, 1), _per_axis("dilation", dilation, 1)
    padding, more = _per_axis("padding", padding, 0), _per_axis("output_padding", output_padding, 0)
    if any(n >= max(steps) for n, *steps in zip(more, stride, dilation, strict=True)):
        found = f"{output_padding} beside stride {stride} and dilation {dilation}"
        raise ValueError(f"output_padding is {found}; it must be less than one of them")
    options = zip(shape[2:], filters[2:], stride, padding, dilation, more, strict=True)
    sizes = tuple((n - 1) * step - 2 * zeros + (taps - 1) * gap + 1 + end for n, taps, step, zeros, gap, end in options)
    if min(sizes) < 1 or min(filters[2:]) < 1:
        found = f"{padding} beside x {tuple(shape)} and weight {tuple(filters)}"
        raise ValueError(f"padding is {found}; it leaves nothing of the result")
    return tuple(zip(filters[2:], stride, dilation, padding, sizes, strict=True))


def _phases(kernel, stride, dilation, padding, size):
    """What of x meets every result that is a stride behind the last, from each that is first along one axis.

    These are the lowest and the highest element that meets the first result, and how many results there are.
    """
    phases = []
    for first in range(min(stride, size)):
        places = [first + padding - tap * dilation for tap in range(kernel)]
        met = [place // stride for place in places if place % stride == 0]
        if met:
            phases.append((met[-1], met[0], ct.cdiv(size - first, stride)))
    return phases


def _reach(phases):
    """First element of x that is read along one axis, negative where that is a zero before it, and the end of all."""
    return min([0, *(low for low, _, _ in phases)]), max([1, *(high + results for _, high, results in phases)])


def _reads_inside(phases, size, tile):
    """Whether all tiles that are read along an axis of x without zeros around it have elements inside, as they must."""
    return all(low > -tile and high + (ct.cdiv(n, tile) - 1) * tile < size for low, high, n in phases)


def _walk(kernel, stride, dilation, padding, before):
    """What the kernel knows of one axis, with `before` zeros in front of x; see `_taps`."""
    common = math.gcd(stride, dilation)
    step, gap = stride // common, dilation // common  # between taps that meet x, and between what they meet
    inverse = next(n for n in range(step) if n * gap % step == 1 % step)
    return stride, step, gap, kernel, inverse, padding + before * stride


@dataclass(frozen=True)
class _Plan:
    """How a transposed convolution becomes a product of matrices."""

    shape: tuple[int, ...]  # of the result
    kernel: Any  # with its hints
    blocks: int
    constants: tuple[Any, ...]
    channels: int  # of x, with zeros behind each group
    before: tuple[int, ...]  # zeros in front of x along each axis
    padded: tuple[int, ...]  # x (N, H, W, C) with all zeros
    filters: tuple[int, ...]  # weight (C, KH, KW, O) with all zeros
    direct: bool  # whether x is read where it is, and zeros around it are not in memory
    far: bool  # whether so many images are out of reach of one launch


@functools.lru_cache(maxsize=4096)
def _plan(device, itemsize, shape, filters, direct, *options):
    """Choose tiles, hints and arrays for x and weight of these shapes; `direct` says whether x can be read as it is."""
    axes = _axes(shape, filters, *options)
    phases = [_phases(*axis) for axis in axes]
    images, groups, out_channels = shape[0], options[3], filters[1]
    rows, columns = (ct.cdiv(size, stride) for _, stride, *_, size in axes)
    count = math.prod(stride for _, stride, *_ in axes)

    def suits(window):
        axes_of_x = zip(phases, shape[2:], window[-_RANK:], strict=True)
        return not direct or all(_reads_inside(*axis) for axis in axes_of_x)

    properties = torch.cuda.get_device_properties(device)
    generations = CONFIGS[itemsize]
    chosen = None
    for config in generations[max(major for major in generations if major <= properties.major)]:
        positions, tile_o, _ = config.tile
        window = _window(positions, images, rows, columns, suits)
        if window is None:
            continue
        tiles = _tiles((*window, tile_o), (images, rows, columns, out_channels)) * groups * count
        chosen = config, window, tiles
        if config.suits(properties.multi_processor_count, out_channels, tiles):
            break
    if chosen is None:
        return _plan(device, itemsize, shape, filters, False, *options)
    config, window, tiles = chosen
    _, tile_o, tile_c = config.tile
    blocks = min(tiles, properties.multi_processor_count // config.num_ctas) if config.persistent else tiles

    channels = shape[1] // groups
    # No tile has channels of two groups.
    tile_c = min(tile_c, _power_of_two(channels) if groups == 1 else channels & -channels)
    tile_c = max(32 // itemsize, tile_c)
    if groups > 1:
        channels = _multiple(channels, tile_c)
    if direct and groups * channels > shape[1]:
        return _plan(device, itemsize, shape, filters, False, *options)
    unit = 16 // itemsize  # elements in 16 bytes, of which TMA wants the strides to be multiples
    reaches = [_reach(axis) for axis in phases]
    before = tuple(0 if direct else -start for start, _ in reaches)
    padded = (images, *(end - start for start, end in reaches), _multiple(groups * channels, unit))
    far = max(math.prod(shape), math.prod(padded)) >= _FAR or max(blocks, _moved(padded)[0]) > _MOST_BLOCKS
    walks = tuple(_walk(*axis[:-1], zeros) for axis, zeros in zip(axes, before, strict=True))
    return _Plan(
        shape=(images, out_channels * groups, *(size for *_, size in axes)),
        kernel=config.kernel,
        blocks=blocks,
        constants=(tiles, walks, groups, window, tile_o, tile_c, config.persistent),
        channels=groups * channels,
        before=before,
        padded=padded,
        filters=(groups * channels, *filters[2:], _multiple(out_channels, unit)),
        direct=direct,
        far=images > 1 and far,
    )


@functools.lru_cache(maxsize=4096)
def _moved(shape):
    """Blocks that fill an array of this shape (N, H, W, C), and the tile of each along W and C."""
    *lines, columns, channels = shape
    tile_c = min(128, _power_of_two(channels))
    tile_w = min(MOVED // tile_c, _power_of_two(columns))
    return math.prod(lines) * ct.cdiv(columns, tile_w) * ct.cdiv(channels, tile_c), tile_w, tile_c


def _move(stream, x, shape, before):
    """Return x (N, C, H, W) as an array of this shape (N, H, W, C), moved by `before`, with zeros around it."""
    target = x.new_empty(shape)
    blocks, *tile = _moved(shape)
    kernel = _conv_transpose2d_move_kernel
    ct.launch(stream, (blocks,), kernel, (x, target, before, x.stride(1) == 1, *tile))
    return target


def _last(x):
    """See x (N, C, H, W) as (N, H, W, C)."""
    return x.permute(0, 2, 3, 1)


def _readable(x):
    """Whether TMA, which is many times as fast, can read x (N, C, H, W) as (N, H, W, C)."""
    first, channel, *others = x.stride()
    unit = 16 // x.element_size()
    aligned = x.data_ptr() % 16 == 0 and all(step % unit == 0 for step in (first, *others))
    return channel == 1 and aligned and max(others) < _FAR and (first < _FAR or x.shape[0] == 1)


def _widened(x, axis, groups, channels):
    """Return x with zeros behind each group of the channels along `axis`, so that they are so many."""
    parts = x.movedim(axis, 0).unflatten(0, (groups, -1))
    wide = x.new_zeros((groups, channels // groups, *parts.shape[2:]))
    wide[:, : parts.shape[1]] = parts
    return wide.flatten(0, 1).movedim(0, axis)


def _shares_memory(out, *operands):
    """Whether writing the result could change an operand that is still read."""
    return any(x.untyped_storage().data_ptr() == out.untyped_storage().data_ptr() for x in operands)


def _convolve(stream, x, weight, arrays, rest, plan, options):
    """Convolve x into the last of the arrays, which have its shape, in parts where one launch does not reach all."""
    if plan.far:
        for x_half, *halves in zip(*(array.tensor_split(2) for array in (x, *arrays)), strict=True):
            plan = _plan(x.device, x.element_size(), x_half.shape, weight.shape, _readable(x_half), *options)
            _convolve(stream, x_half, weight, halves, rest, plan, options)
        return
    if plan.channels > x.shape[1]:
        groups = options[3]
        x, weight = _widened(x, 1, groups, plan.channels), _widened(weight, 0, groups, plan.channels)
    images = _last(x) if plan.direct else _move(stream, x, plan.padded, plan.before)
    if images.stride(0) >= _FAR:  # of a single image, where it is never used
        images = images.as_strided(images.shape, (images.stride(1), *images.stride()[1:]))
    filters = _last(weight) if _readable(weight) else _move(stream, weight, plan.filters, (0,) * _RANK)
    arguments = (images, filters, *arrays, *rest, *plan.constants)
    ct.launch(stream, (plan.blocks,), plan.kernel, arguments)


@register_impl("conv_transpose2d", backend="cutile")
def conv_transpose2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    output_padding: int | tuple[int, int] = 0,
    groups: int = 1,
    dilation: int | tuple[int, int] = 1,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Convolve images (N, C, H, W) transposed."""
    if kwargs:
        raise TypeError(f"conv_transpose2d got unexpected arguments: {', '.join(kwargs)}")
    _check_operands(x=x, weight=weight)
    options = (stride, padding, output_padding, groups, dilation)
    options = [tuple(option) if isinstance(option, list) else option for option in options]
    plan = _plan(x.device, x.element_size(), x.shape, weight.shape, x.ndim == _RANK + 2 and _readable(x), *options)
    shape = plan.shape
    if out is None:
        channels_last = x.stride(1) == 1 < x.shape[1] and x.is_contiguous(memory_format=torch.channels_last)
        memory_format = torch.channels_last if channels_last else torch.contiguous_format
        out = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=memory_format)
    elif out.shape != shape or out.dtype != x.dtype or out.device != x.device:
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {x.dtype} on {x.device}")
    if out.numel() == 0:
        return out
    result = torch.empty_like(out) if _shares_memory(out, x, weight) else out
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        arrays = [result]
        _convolve(stream, x, weight, arrays, (), plan, options)
        if result is not out:
            out.copy_(result)
    return out
