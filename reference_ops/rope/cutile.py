"""cuTile backend of rope."""

import functools
from dataclasses import dataclass
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]

# By whether it takes several tiles to hold all pairs of a head without padding: pairs of a tile, and heads of a block
TILES = {False: (1024, 2), True: (2048, 4)}
HINTS = {  # by whether a block needs many registers, for four heads or for masks; measured on sm_90
    False: {"occupancy": 8, "num_worker_warps": 4},
    True: {"occupancy": 4, "num_worker_warps": 4},
}


def _load(A, place, inside, EXACT):
    """Elements of A as fp32; zero outside, unless all are inside."""
    if EXACT:
        return ct.gather(A, place, check_bounds=False).astype(ct.float32)
    return ct.gather(A, place, mask=inside, padding_value=0, check_bounds=False).astype(ct.float32)


def _store(A, place, tile, inside, EXACT):
    if EXACT:
        ct.scatter(A, place, tile.astype(A.dtype), check_bounds=False)
    else:
        ct.scatter(A, place, tile.astype(A.dtype), mask=inside, check_bounds=False)


def _turn_heads(X1, X2, Rest, Y1, Y2, Passed, Cos, Sin, SIGN, TILE_S, TILE_H, TILE_D, TILE_REST, EXACT):
    """Turn the pairs (X1, X2) of (A, S, H, R / 2), TILE_H heads of a block by the same angles; pass the rest on."""
    columns, heads = ct.int32(ct.cdiv(Cos.shape[3], TILE_D)), ct.int32(Cos.shape[2] // TILE_H)
    steps = ct.int32(ct.cdiv(Cos.shape[1], TILE_S))
    block = ct.bid(0)
    first_d, block = block % columns * TILE_D, block // columns
    first_h, block = block % heads * TILE_H, block // heads
    first_s, a = block % steps * TILE_S, block // steps
    s = (first_s + ct.arange(TILE_S, dtype=ct.int32))[:, None]
    d = (first_d + ct.arange(TILE_D, dtype=ct.int32))[None, :]
    inside = (s < Cos.shape[1]) & (d < Cos.shape[3])

    # All loads are under way before the first result is needed
    tx1s, tx2s = (), ()
    for k in ct.static_iter(range(TILE_H)):
        tx1s += (_load(X1, (a, s, first_h + k, d), inside, EXACT),)
        tx2s += (_load(X2, (a, s, first_h + k, d), inside, EXACT),)
    tcos = _load(Cos, (a, s, first_h, d), inside, EXACT)
    tsin = _load(Sin, (a, s, first_h, d), inside, EXACT) * SIGN
    for k in ct.static_iter(range(TILE_H)):
        _store(Y1, (a, s, first_h + k, d), tx1s[k] * tcos - tx2s[k] * tsin, inside, EXACT)
        _store(Y2, (a, s, first_h + k, d), tx2s[k] * tcos + tx1s[k] * tsin, inside, EXACT)
    if TILE_REST > 0 and first_d == 0:
        for k in ct.static_iter(range(TILE_H)):
            index = (a, first_s // TILE_S, first_h + k, 0)
            trest = ct.load(Rest, index, (1, TILE_S, 1, TILE_REST), padding_mode=ct.PaddingMode.ZERO)
            ct.store(Passed, index, trest)


@ct.kernel
def _rope_kernel(
    X1,
    X2,
    Rest,
    Y1,
    Y2,
    Passed,
    Cos,
    Sin,
    SIGN: ConstInt,
    TILE_S: ConstInt,
    TILE_H: ConstInt,
    TILE_D: ConstInt,
    TILE_REST: ConstInt,
    EXACT: ConstBool,
):
    _turn_heads(X1, X2, Rest, Y1, Y2, Passed, Cos, Sin, SIGN, TILE_S, TILE_H, TILE_D, TILE_REST, EXACT)


@ct.kernel
def _rope_wide_kernel(
    X1: ct.IndexedWithInt64,
    X2: ct.IndexedWithInt64,
    Rest: ct.IndexedWithInt64,
    Y1: ct.IndexedWithInt64,
    Y2: ct.IndexedWithInt64,
    Passed: ct.IndexedWithInt64,
    Cos: ct.IndexedWithInt64,
    Sin: ct.IndexedWithInt64,
    SIGN: ConstInt,
    TILE_S: ConstInt,
    TILE_H: ConstInt,
    TILE_D: ConstInt,
    TILE_REST: ConstInt,
    EXACT: ConstBool,
):
    """The same for arrays of 2^31 elements or more, which need wider indices."""
    _turn_heads(X1, X2, Rest, Y1, Y2, Passed, Cos, Sin, SIGN, TILE_S, TILE_H, TILE_D, TILE_REST, EXACT)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.cache
def _kernel(wide, heavy):
    """Kernel with the hints for blocks that need many registers, or few."""
    kernel = _rope_kernel
    if wide:
        kernel = _rope_wide_kernel
    return kernel.replace_hints(**HINTS[heavy])


@dataclass(frozen=True)
class _Plan:
    """How pairs are turned: views as (shape, strides, first element) of tensors, and a launch."""

    turned: tuple[Any, ...]  # of x and of the result: pairs, and what is passed on
    angles: tuple[Any, ...]  # of cos and of sin
    kernel: Any  # with its hints
    grid: tuple[int]
    constants: tuple[Any, ...]


def _is_wide(shape, steps, _first):
    """Whether 32 bits are too few for the places of a view."""
    span = 0
    for n, step in zip(shape, steps, strict=True):
        span += n * step
    return span >= 2**31


@functools.lru_cache(maxsize=4096)
def _plan(shape, x_steps, y_steps, angles, cos_steps, sin_steps, in_place):
    """Plan for x and the result of a shape; all views have four axes, and angles are repeated along that of heads."""
    *sizes, width = (1,) * (4 - len(shape)) + shape
    half, rest = angles[-1], width - 2 * angles[-1]
    x_steps, y_steps, cos_steps, sin_steps = (
        [0] * (4 - len(steps)) + list(steps) for steps in (x_steps, y_steps, cos_steps, sin_steps)
    )
    for d, n in enumerate(angles[:-1], 4 - len(angles)):
        if n == 1:
            cos_steps[d] = sin_steps[d] = 0

    # The axis of heads is the longest one along which angles do not change; of the others the longer one is tiled
    shared = [d for d in range(3) if cos_steps[d] == sin_steps[d] == 0 or sizes[d] == 1]
    heads = max(shared, key=lambda d: sizes[d], default=0)
    order = [*sorted((d for d in range(3) if d != heads), key=lambda d: sizes[d]), heads]
    outer, length, copies = sizes = [sizes[d] for d in order]
    divisor = half & -half  # a power of two: of 48 pairs three tiles of 16
    several = 16 <= divisor < half
    pairs, most_heads = TILES[several]
    tile_d = min(divisor if several else _power_of_two(half), pairs)
    tile_h = min(copies & -copies, most_heads) if shared else 1  # a divisor: no tile is beyond the last head
    tile_s = min(_power_of_two(length), pairs // tile_d)
    tile_rest = _power_of_two(rest) if rest and not in_place else 0

    def view(steps, first, width):
        return (*sizes, width), (*(steps[d] for d in order), steps[3]), first * steps[3]

    parts = [(0, half), (half, half), (2 * half, rest) if tile_rest else (0, half)]
    turned = tuple([view(steps, *part) for part in parts] for steps in (x_steps, y_steps))
    turning = tuple([view(steps, 0, half)] for steps in (cos_steps, sin_steps))
    wide = any(_is_wide(*each) for views in (*turned, *turning) for each in views)
    exact = length % tile_s == 0 and half % tile_d == 0
    kernel = _kernel(wide, several or not exact)
    grid = (outer * ct.cdiv(length, tile_s) * ct.cdiv(copies, tile_h) * ct.cdiv(half, tile_d),)
    return _Plan(turned, turning, kernel, grid, (tile_s, tile_h, tile_d, tile_rest, exact))


def _views(t, views):
    return [t.as_strided(shape, steps, t.storage_offset() + first) for shape, steps, first in views]


def _launch(x, y, cos, sin, sign):
    """Turn the pairs of `x` into `y` by `sign` times the angles."""
    if x.ndim > 4:
        cos, sin = (t.expand(*x.shape[:-1], -1).reshape(-1, *x.shape[-3:-1], t.shape[-1]) for t in (cos, sin))
        x, y = (t.reshape(-1, *t.shape[-3:]) for t in (x, y))
    steps = (x.stride(), y.stride(), tuple(cos.shape), cos.stride(), sin.stride())
    plan = _plan(tuple(x.shape), *steps, x.data_ptr() == y.data_ptr())
    arrays = []
    for t, views in zip((x, y, cos, sin), (*plan.turned, *plan.angles), strict=True):
        arrays += _views(t, views)
    with torch.cuda.device(x.device):
        ct.launch(torch.cuda.current_stream(x.device), plan.grid, plan.kernel, (*arrays, sign, *plan.constants))


def _turn(x, cos, sin, sign=1, out=None):
    # In place, or through a tensor of its own where `out` may overlap an input otherwise
    storages = [t.untyped_storage().data_ptr() for t in (x, cos, sin) if out is not None]
    same = out is not None and out.data_ptr() == x.data_ptr() and out.stride() == x.stride()
    direct = out is not None and (out.untyped_storage().data_ptr() not in storages[same:]) and out.ndim <= 4
    y = out if direct else torch.empty_like(x, memory_format=torch.contiguous_format)
    if cos.shape[-1] == 0:
        y.copy_(x)
    elif x.numel():
        _launch(x, y, cos, sin, sign)
    return y if out is None or direct else out.copy_(y)


class _Rope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        return _turn(x, cos, sin)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        return _turn(dy, *ctx.saved_tensors, sign=-1), None, None


def _check_angles(name, angles, x):
    """Refuse cosines or sines that do not fit the pairs of `x`."""
    if not isinstance(angles, torch.Tensor) or angles.dtype not in _DTYPES:
        found = getattr(angles, "dtype", type(angles).__name__)
        raise TypeError(f"{name} is {found}; it must be a tensor of float32, float16, bfloat16")
    if angles.device != x.device:
        raise ValueError(f"{name} is on {angles.device}; it must be on {x.device}, like x")
    leading, given = x.shape[:-1], angles.shape[:-1]
    fits = angles.ndim > 0 and len(given) <= len(leading) and 2 * angles.shape[-1] <= x.shape[-1]
    if not fits or any(n not in (1, m) for n, m in zip(reversed(given), reversed(leading), strict=False)):
        most = f"{tuple(leading)} and at most {x.shape[-1] // 2} pairs"
        raise ValueError(f"{name} has shape {tuple(angles.shape)}; it must broadcast to {most}")
    if angles.requires_grad and torch.is_grad_enabled():
        raise ValueError(f"{name} requires a gradient, and only x can have one; pass {name}.detach()")


@register_impl("rope", backend="cutile")
def rope(
    x: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Rotary position embedding of pairs (i, i + R / 2) of the last dimension, as Llama and GPT-NeoX have it."""
    if kwargs:
        raise TypeError(f"rope got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    if x.ndim == 0:
        raise ValueError("x is a scalar; it must have at least one dimension, that of the pairs")
    _check_angles("cos", cos, x)
    _check_angles("sin", sin, x)
    if sin.shape != cos.shape:
        raise ValueError(f"sin has shape {tuple(sin.shape)}; it must be {tuple(cos.shape)}, that of cos")
    if out is not None and (out.shape != x.shape or out.dtype != x.dtype or out.device != x.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {tuple(x.shape)} of {x.dtype} on {x.device}")
    if x.requires_grad and torch.is_grad_enabled():
        if out is not None:
            raise ValueError("out is given and x requires a gradient; call it without out, or under torch.no_grad()")
        return _Rope.apply(x, cos, sin)
    return _turn(x, cos, sin, out=out)
