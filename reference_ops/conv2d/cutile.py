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
            _Config((128, 256, 64), persistent=True),
            _Config((128, 256, 64)),
            _Config((128, 128, 64)),
            _Config((256, 64, 64)),
            _Config((128, 64, 64)),
            _Config((64, 64, 64)),
        ),
        10: (_Config((128, 128, 64)), _Config((128, 64, 64)), _Config((64, 64, 64))),
        12: (_Config((128, 128, 64)), _Config((64, 64, 64))),
    },
    4: {8: (_Config((64, 64, 16)),), 9: (_Config((128, 128, 8)), _Config((64, 64, 16)))},
}
PAD_TILE = 4096  # elements that a block of the padding moves
DEPTHWISE_TILE = (4, 8, 64)  # rows, columns and channels of a block


@ct.kernel
def _conv2d_pad_kernel(
    X: ct.IndexedWithInt64,
    Padded: ct.IndexedWithInt64,
    before: tuple[int, ...],
    CHANNELS_LAST: ConstBool,
    TILE_W: ConstInt,
    TILE_C: ConstInt,
):
    """Padded (N, H, W, C) = X moved by `before`, with zeros around it."""
    tiles_w = ct.num_tiles(Padded, 2, (1, 1, TILE_W, TILE_C))
    tiles_c = ct.num_tiles(Padded, 3, (1, 1, TILE_W, TILE_C))
    line, tile = ct.bid(0) // (tiles_w * tiles_c), ct.bid(0) % (tiles_w * tiles_c)
    w, c = tile // tiles_c, tile % tiles_c
    n, h = line // Padded.shape[1], line % Padded.shape[1]

    # What is outside of X, also before its start, is read as zero.
    x = w * TILE_W - before[1] + ct.arange(TILE_W, dtype=ct.int32)
    channels = c * TILE_C + ct.arange(TILE_C, dtype=ct.int32)
    if CHANNELS_LAST:
        tx = ct.gather(X, (n, h - before[0], x[:, None], channels[None, :]))
    else:  # neighbours in memory are neighbours along W
        tx = ct.gather(X, (n, h - before[0], x[None, :], channels[:, None])).transpose()
    ct.store(Padded, (n, h, w, c), tx.reshape((1, 1, TILE_W, TILE_C)))


@ct.kernel(num_worker_warps=8)
def _conv2d_kernel(
    X,
    Weight,
    Out,
    tiles: int,
    KERNEL: ct.Constant,
    STRIDE: ct.Constant,
    DILATION: ct.Constant,
    TILE: ct.Constant,
    TILE_O: ConstInt,
    TILE_C: ConstInt,
    PERSISTENT: ConstBool,
):
    """Convolve X, padded and channels last, one tile to a block or, where PERSISTENT, several.

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
            y, x = tap // KERNEL_W * DILATION[0], tap % KERNEL_W * DILATION[1]
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


@ct.kernel
def _conv2d_depthwise_kernel(
    X: ct.IndexedWithInt64,
    Weight,
    Out,
    before: tuple[int, ...],
    KERNEL: ct.Constant,
    STRIDE: ct.Constant,
    DILATION: ct.Constant,
    TILE: ct.Constant,
):
    """Convolve each channel of X (N, H, W, C) with a filter of its own, Weight (taps, C)."""
    TILE_H, TILE_W, TILE_C = TILE
    TILE_OUT = (1, TILE_H, TILE_W, TILE_C)
    tiles_h, tiles_w = ct.num_tiles(Out, 1, TILE_OUT), ct.num_tiles(Out, 2, TILE_OUT)
    tiles_c = ct.num_tiles(Out, 3, TILE_OUT)
    tile, c = ct.bid(0) // tiles_c, ct.bid(0) % tiles_c
    tile, w = tile // tiles_w, tile % tiles_w
    n, h = tile // tiles_h, tile % tiles_h

    rows = (h * TILE_H + ct.arange(TILE_H, dtype=ct.int32)) * STRIDE[0] - before[0]
    columns = (w * TILE_W + ct.arange(TILE_W, dtype=ct.int32)) * STRIDE[1] - before[1]
    channels = c * TILE_C + ct.arange(TILE_C, dtype=ct.int32)
    tacc = ct.zeros(TILE, ct.float32)
    for tap in range(KERNEL[0] * KERNEL[1]):
        y = rows + tap // KERNEL[1] * DILATION[0]
        x = columns + tap % KERNEL[1] * DILATION[1]
        tx = ct.gather(X, (n, y[:, None, None], x[None, :, None], channels[None, None, :]))
        tweight = ct.load(Weight, (tap, c), (1, TILE_C), padding_mode=ZERO)
        tacc = tacc + tx.astype(ct.float32) * tweight.astype(ct.float32)

    ct.store(Out, (n, h, w, c), tacc.astype(Out.dtype).reshape(TILE_OUT))


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

    @property
    def needed(self):
        """What of the padded image is read."""
        return tuple(
            (size - 1) * stride + (kernel - 1) * dilation + 1
            for size, stride, kernel, dilation in zip(self.sizes, self.stride, self.kernel, self.dilation, strict=True)
        )


def _per_axis(name, value, least):
    """One whole number for each axis of an image."""
    numbers = (value,) * _RANK if isinstance(value, int) else tuple(value)
    if len(numbers) != _RANK or not all(isinstance(number, int) and number >= least for number in numbers):
        raise ValueError(f"{name} is {value}; it must be a whole number of at least {least}, or {_RANK} of them")
    return numbers


def _geometry(x, weight, stride, padding, dilation):
    """Check the arguments; raises ValueError."""
    kernel = tuple(weight.shape[2:])
    stride, dilation = _per_axis("stride", stride, 1), _per_axis("dilation", dilation, 1)
    spans = [(size - 1) * step for size, step in zip(kernel, dilation, strict=True)]
    if padding == "same" and max(stride) == 1:
        padding = [(span // 2, span - span // 2) for span in spans]
    elif isinstance(padding, str) and padding != "valid":
        found = f"{padding!r} beside stride {stride}"
        raise ValueError(f"padding is {found}; it must be whole numbers, 'valid', or with stride 1 'same'")
    else:
        padding = [(n, n) for n in _per_axis("padding", 0 if padding == "valid" else padding, 0)]
    before, after = zip(*padding, strict=True)
    whole = [size + first + last for size, first, last in zip(x.shape[2:], before, after, strict=True)]
    rests = [size - span - 1 for size, span in zip(whole, spans, strict=True)]
    if min(rests) < 0 or min(kernel) < 1:
        found = f"{tuple(weight.shape)} beside x {tuple(x.shape)}"
        raise ValueError(f"weight has shape {found}; its filters must fit into x with the padding")
    sizes = tuple(rest // step + 1 for rest, step in zip(rests, stride, strict=True))
    return _Geometry(kernel, stride, dilation, before, sizes)


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


def _window(positions, images, rows, columns):
    """Split a tile of so many positions into (images, rows, columns), so that few are beyond the edges."""
    windows = [
        (positions >> (h + w), 1 << h, 1 << w)
        for w in reversed(range(min(positions, _power_of_two(columns)).bit_length()))
        for h in range(min(positions >> w, _power_of_two(rows)).bit_length())
        if positions >> (h + w) <= _power_of_two(images)
    ]
    width = min(positions, _power_of_two(columns))
    windows = windows or [(1, positions // width, width)]
    return min(windows, key=lambda window: _tiles(window, (images, rows, columns)))


def _tiles(tile, shape):
    """Tiles that cover an array of this shape."""
    return math.prod(ct.cdiv(size, step) for size, step in zip(shape, tile, strict=True))


@functools.lru_cache(maxsize=4096)
def _plan(device, itemsize, images, rows, columns, groups, out_channels, in_channels):
    """Choose (kernel, blocks, tiles, constants) for a result of this size."""
    properties = torch.cuda.get_device_properties(device)
    generations = CONFIGS[itemsize]
    for config in generations[max(major for major in generations if major <= properties.major)]:
        positions, tile_o, tile_c = config.tile
        window = _window(positions, images, rows, columns)
        tiles = _tiles((*window, tile_o), (images, rows, columns, out_channels)) * groups
        if config.suits(properties.multi_processor_count, out_channels, tiles):
            break
    tile_c = max(32 // itemsize, min(tile_c, _power_of_two(in_channels)))
    blocks = min(tiles, properties.multi_processor_count // config.num_ctas) if config.persistent else tiles
    return config.kernel, blocks, tiles, (window, tile_o, tile_c, config.persistent)


def _last(x):
    """See x (N, C, ...) as (N, H, W, C)."""
    return x.movedim(1, -1)


def _empty(x, shape):
    """Memory for a result of this shape, channels last where x is."""
    if x.movedim(1, -1).is_contiguous() and not x.is_contiguous():
        return x.new_empty((shape[0], *shape[2:], shape[1])).movedim(-1, 1)
    return x.new_empty(shape)


def _widened(x, size):
    """Return x with zeros at the end of its last dimension, or x itself where that has the size."""
    if x.shape[-1] == size:
        return x
    wide = x.new_zeros((*x.shape[:-1], size))
    wide[..., : x.shape[-1]] = x
    return wide


def _pad(x, sizes, before):
    """Return x (N, H, W, C) in an array of other sizes, with zeros around it."""
    padded = x.new_empty((x.shape[0], *sizes))
    *lines, columns, channels = padded.shape
    tile_c = min(128, _power_of_two(channels))
    tile_w = min(PAD_TILE // tile_c, _power_of_two(columns))
    blocks = math.prod(lines) * ct.cdiv(columns, tile_w) * ct.cdiv(channels, tile_c)
    arguments = (x, padded, before, x.stride(-1) == 1, tile_w, tile_c)
    kernel = _conv2d_pad_kernel
    ct.launch(torch.cuda.current_stream(x.device), (blocks,), kernel, arguments)
    return padded


def _readable(x, whole):
    """Whether TMA can read x (N, H, W, C), which is many times as fast; `whole`: its rows are without gaps."""
    unit = 16 // x.element_size()  # elements in 16 bytes
    aligned = x.data_ptr() % 16 == 0 and all(stride % unit == 0 and stride < _FAR for stride in x.stride()[:-1])
    return x.stride(-1) == 1 and aligned and (not whole or x.stride(-2) == x.shape[-1])


def _arrange(x, geometry, channels):
    """Return x padded, where it needs that, as (N, H / stride, stride, W / stride, stride * channels)."""
    *_, rows, columns = (ct.cdiv(n, step) * step for n, step in zip(geometry.needed, geometry.stride, strict=True))
    *_, step_h, step_w = geometry.stride
    fits = not any(geometry.before) and rows <= x.shape[-3] and columns <= x.shape[-2] and channels == x.shape[-1]
    if not fits or not _readable(x, step_w > 1):
        x = _pad(x, (*geometry.needed[:-2], rows, columns, channels), geometry.before)
    x = x[:, :rows, :columns]
    return x.unflatten(2, (-1, step_w)).flatten(3).unflatten(1, (-1, step_h))


def _near(array):
    """The same array with a stride that a kernel can hold: that of a batch of one is never used."""
    if array.shape[0] == 1 and array.stride(0) >= _FAR:
        return array.as_strided(array.shape, (max(array.stride()[1:]), *array.stride()[1:]))
    return array


def _convolve_depthwise(x, filters, arrays, rest, geometry):
    """Convolve x where each channel has a filter of its own."""
    out = arrays[-1]
    before = geometry.before
    if x.stride(-1) != 1:
        x, before = _pad(x, (*geometry.needed, x.shape[-1]), before), (0,) * len(before)
    tiles = _tiles(DEPTHWISE_TILE, out.shape[-3:]) * math.prod(out.shape[:-3])
    constants = (geometry.kernel, geometry.stride, geometry.dilation, DEPTHWISE_TILE)
    arguments = (x, filters.flatten(1).mT.contiguous(), *arrays, *rest, before, *constants)
    kernel = _conv2d_depthwise_kernel
    ct.launch(torch.cuda.current_stream(x.device), (tiles,), kernel, arguments)


def _convolve(x, filters, arrays, rest, geometry):
    """Convolve x into the last of the arrays, which have its shape; all are channels last."""
    out = arrays[-1]
    images = x.shape[0]
    far = max(x.numel(), out.numel()) >= _FAR or images * math.prod(geometry.needed[:-1]) > _MOST_LINES
    if images > 1 and far:
        for x_half, *halves in zip(*(array.tensor_split(2) for array in (x, *arrays)), strict=True):
            _convolve(x_half, filters, halves, rest, geometry)
        return
    out_channels, in_channels = filters.shape[0], filters.shape[-1]
    groups = x.shape[-1] // in_channels
    if groups == out_channels == x.shape[-1]:
        _convolve_depthwise(x, filters, arrays, rest, geometry)
        return
    out_channels //= groups
    # The taps of a row are neighbours in memory: where there are few channels, they make one tap with more of them.
    kernel_w, stride_w = geometry.kernel[-1], geometry.stride[-1]
    folded = groups == 1 and geometry.dilation[-1] == 1 and 1 < kernel_w <= 64 // in_channels
    unit = 16 // x.element_size()  # elements in 16 bytes, of which TMA wants the strides to be multiples
    step = unit // math.gcd(unit, stride_w) if folded else unit
    terms = ct.cdiv(in_channels, step) * step * (kernel_w if folded else 1)
    size = (images, *out.shape[-3:-1], groups, out_channels, terms)
    kernel, blocks, tiles, constants = _plan(x.device, x.element_size(), *size)
    if groups > 1 or (stride_w > 1 and not folded):
        step = constants[2]  # no tile has channels of two groups, or of two columns
        x = _widened(x.unflatten(-1, (groups, -1)), ct.cdiv(in_channels, step) * step).flatten(-2)
    channels = ct.cdiv(in_channels, step) * step

    x = _arrange(x, geometry, groups * channels)
    filters = _widened(filters, channels)
    taps, strides = geometry.kernel, geometry.stride
    if folded:
        x = x.as_strided((*x.shape[:3], out.shape[-2], terms), x.stride())
        filters = _widened(filters.flatten(-2), ct.cdiv(terms, unit) * unit)
        taps, strides = (*taps[:-1], 1), (*strides[:-1], 1)
    filters = filters.reshape(groups, out_channels, -1, filters.shape[-1])
    filters = filters if filters.data_ptr() % 16 == 0 else filters.clone()
    arrays = [_near(array.unflatten(-1, (groups, -1))) for array in arrays]
    arguments = (_near(x), filters, *arrays, *rest, tiles)
    constants = (taps, strides, geometry.dilation, *constants)
    ct.launch(torch.cuda.current_stream(x.device), (blocks,), kernel, (*arguments, *constants))


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
    if x.ndim != 4:
        raise ValueError(f"x has shape {tuple(x.shape)}; it must be (N, C, H, W)")
    if not isinstance(groups, int) or not 0 < groups <= x.shape[1] or x.shape[1] % groups:
        raise ValueError(f"groups is {groups}; it must divide the {x.shape[1]} channels of x")
    if weight.ndim != 4 or weight.shape[1] * groups != x.shape[1] or weight.shape[0] % groups:
        found = f"{tuple(weight.shape)} beside x {tuple(x.shape)} in {groups} groups"
        raise ValueError(f"weight has shape {found}; it must be (O, C / groups, KH, KW), O a multiple of groups")
    geometry = _geometry(x, weight, stride, padding, dilation)
    shape = (x.shape[0], weight.shape[0], *geometry.sizes)
    if out is None:
        out = _empty(x, shape)
    elif out.shape != shape or out.dtype != x.dtype or out.device != x.device:
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {shape} of {x.dtype} on {x.device}")
    if out.numel() == 0:
        return out
    result = _last(out)
    direct = result.stride(-1) == 1 and max(result.stride()) < _FAR
    if any(t.untyped_storage().data_ptr() == out.untyped_storage().data_ptr() for t in (x, weight)):
        direct = False  # an operand shares its memory
    if not direct:
        result = x.new_empty(result.shape)
    with torch.cuda.device(x.device):
        _convolve(_last(x), _last(weight), [result], (), geometry)
    if not direct:
        _last(out).copy_(result)
    return out
