"""cuTile backend of rope."""

import functools
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]

BLOCK = 2048  # first elements of pairs in a block
HEADS = 16  # of a block, which all turn by the same angles
HINTS = {"occupancy": ct.ByTarget(sm_90=8, default=4), "num_worker_warps": 4}  # measured on sm_90


def _load(A, index, tile):
    """Tile of A as fp32; zero outside."""
    return ct.load(A, index, tile, padding_mode=ct.PaddingMode.ZERO, allow_tma=False).astype(ct.float32)


@ct.kernel(**HINTS)
def _rope_kernel(
    X1: ct.IndexedWithInt64,
    X2: ct.IndexedWithInt64,
    Y1: ct.IndexedWithInt64,
    Y2: ct.IndexedWithInt64,
    Cos: ct.IndexedWithInt64,
    Sin: ct.IndexedWithInt64,
    Rest: ct.IndexedWithInt64,
    Passed: ct.IndexedWithInt64,
    SIGN: ConstInt,
    TILE_S: ConstInt,
    TILE_H: ConstInt,
    TILE_D: ConstInt,
    TILE_REST: ConstInt,
):
    """Turn the pairs (X1, X2) of (A, S, H, R / 2) by angles that heads share; pass the rest on."""
    tile = (1, TILE_S, TILE_H, TILE_D)
    heads = ct.int32(ct.cdiv(Y1.shape[2], TILE_H))
    steps = ct.int32(ct.cdiv(Y1.shape[1], TILE_S))
    h = ct.bid(0) % heads
    s = ct.bid(0) // heads % steps
    a = ct.bid(0) // heads // steps

    tcos = _load(Cos, (a, s, h * TILE_H, 0), (1, TILE_S, 1, TILE_D))
    tsin = _load(Sin, (a, s, h * TILE_H, 0), (1, TILE_S, 1, TILE_D)) * SIGN
    tx1, tx2 = _load(X1, (a, s, h, 0), tile), _load(X2, (a, s, h, 0), tile)
    ct.store(Y1, (a, s, h, 0), (tx1 * tcos - tx2 * tsin).astype(Y1.dtype), allow_tma=False)
    ct.store(Y2, (a, s, h, 0), (tx2 * tcos + tx1 * tsin).astype(Y2.dtype), allow_tma=False)
    if TILE_REST > 0:
        trest = ct.load(Rest, (a, s, h, 0), (1, TILE_S, TILE_H, TILE_REST), padding_mode=ct.PaddingMode.ZERO)
        ct.store(Passed, (a, s, h, 0), trest)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.lru_cache(maxsize=4096)
def _plan(shape, x_steps, y_steps, angles, cos_steps, sin_steps, in_place):
    """Choose (views of x and y as shape, strides and first element, the same of cos and sin, grid, tiles).

    All views have four axes, of which one, that of heads, has the same angles everywhere.
    """
    *sizes, width = (1,) * (4 - len(shape)) + shape
    half, rest = angles[-1], width - 2 * angles[-1]
    repeated = [d for d, n in enumerate(angles[:-1], 4 - len(angles)) if n == 1]
    x_steps, y_steps, cos_steps, sin_steps = (
        [0] * (4 - len(steps)) + list(steps) for steps in (x_steps, y_steps, cos_steps, sin_steps)
    )
    for d in repeated:
        cos_steps[d] = sin_steps[d] = 0

    # The axis of heads is the longest one along which angles do not change; of the others the longer one is tiled
    shared = [d for d in range(3) if cos_steps[d] == sin_steps[d] == 0 or sizes[d] == 1]
    heads = max(shared, key=lambda d: sizes[d], default=0)
    order = [*sorted((d for d in range(3) if d != heads), key=lambda d: sizes[d]), heads]
    outer, length, copies = sizes = [sizes[d] for d in order]
    tile_d = _power_of_two(half)
    tile_h = min(_power_of_two(copies), HEADS) if shared else 1
    tile_s = min(_power_of_two(length), max(1, BLOCK // (tile_h * tile_d)))
    tile_rest = _power_of_two(rest) if rest and not in_place else 0

    def view(steps, first, width):
        return (*sizes, width), (*(steps[d] for d in order), steps[3]), first * steps[3]

    parts = [(0, half), (half, half)]
    if tile_rest:
        parts.append((2 * half, rest))
    turned = [[view(steps, *part) for part in parts] for steps in (x_steps, y_steps)]
    grid = (outer * ct.cdiv(length, tile_s) * ct.cdiv(copies, tile_h),)
    return turned, [view(steps, 0, half) for steps in (cos_steps, sin_steps)], grid, (tile_s, tile_h, tile_d, tile_rest)


def _views(t, views):
    return [t.as_strided(shape, steps, t.storage_offset() + first) for shape, steps, first in views]


def _launch(x, y, cos, sin, sign):
    """Turn the pairs of `x` into `y` by `sign` times the angles."""
    if x.ndim > 4:
        cos, sin = (t.expand(*x.shape[:-1], -1).reshape(-1, *x.shape[-3:-1], t.shape[-1]) for t in (cos, sin))
        x, y = (t.reshape(-1, *t.shape[-3:]) for t in (x, y))
    steps = (x.stride(), y.stride(), tuple(cos.shape), cos.stride(), sin.stride())
    turned, angles, grid, tiles = _plan(tuple(x.shape), *steps, x.data_ptr() == y.data_ptr())
    xs, ys = (_views(t, views) for t, views in zip((x, y), turned, strict=True))
    (cos,), (sin,) = (_views(t, [view]) for t, view in zip((cos, sin), angles, strict=True))
    arguments = (*xs[:2], *ys[:2], cos, sin, xs[-1], ys[-1], sign, *tiles)
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        ct.launch(stream, grid, _rope_kernel, arguments)


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
