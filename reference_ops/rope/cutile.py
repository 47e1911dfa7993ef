"""cuTile backend of rope."""

import functools
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]

PAIRS = 1024  # of a tile
GROUP = 8  # neighbours among them that are in one row, at most
HINTS = {  # by whether a block needs masks, and registers for them; measured on sm_90
    False: {"occupancy": ct.ByTarget(sm_90=12, default=8), "num_worker_warps": 4},
    True: {"occupancy": 8, "num_worker_warps": 4},
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


def _place(a, s, h, OUTER, LENGTH):
    """Where rows of head h are in the first three axes of X, which may be in any order."""
    place = ()
    for axis in ct.static_iter(range(3)):
        if axis == OUTER:
            place += (a,)
        elif axis == LENGTH:
            place += (s,)
        else:
            place += (h,)
    return place


def _turning(A, place, SHARED):
    """Where the angles of rows are in the first axes of A: at the start of those whose bits are set in SHARED."""
    where = ()
    for k in ct.static_iter(range(A.ndim - 1)):
        axis = k + 4 - A.ndim
        if SHARED >> axis & 1:
            where += (0,)
        else:
            where += (place[axis],)
    return where


def _turn_rows(X, Y, Y2, Cos, Sin, SIGN, OUTER, LENGTH, HEADS, SHARED, HALF, GROUP, TILE, TILE_REST, EXACT):
    """Turn the pairs (d, d + HALF) of rows of one head of X by their angles; pass the rest on.

    Y2 is Y from HALF on: stores to arrays of their own do not wait for each other. A row is taken as groups of pairs,
    so that those of rows of any length fill a tile.
    """
    length, heads = X.shape[LENGTH], ct.int32(X.shape[HEADS])
    steps = ct.int32(ct.cdiv(length * (HALF // GROUP), TILE))
    block = ct.bid(0)
    first, block = block % steps * TILE, block // steps  # neighbours in memory at about the same time
    h, a = block % heads, block // heads
    group = (first + ct.arange(TILE, dtype=ct.int32))[:, None]
    s, group = group // (HALF // GROUP), group % (HALF // GROUP)
    d = group * GROUP + ct.arange(GROUP, dtype=ct.int32)[None, :]
    inside = s < length
    place = _place(a, s, h, OUTER, LENGTH)
    turning = (*_turning(Cos, place, SHARED), d)

    # All loads are under way before the first result is needed
    tx1 = _load(X, (*place, d), inside, EXACT)
    tx2 = _load(X, (*place, d + HALF), inside, EXACT)
    tcos = _load(Cos, turning, inside, EXACT)
    tsin = _load(Sin, turning, inside, EXACT) * SIGN
    _store(Y, (*place, d), tx1 * tcos - tx2 * tsin, inside, EXACT)
    _store(Y2, (*place, d), tx2 * tcos + tx1 * tsin, inside, EXACT)
    if TILE_REST > 0:  # shared out among the groups of the row
        rest = 2 * HALF + group * TILE_REST + ct.arange(TILE_REST, dtype=ct.int32)[None, :]
        passed = inside & (rest < X.shape[3])
        _store(Y, (*place, rest), _load(X, (*place, rest), passed, False), passed, False)


@ct.kernel
def _rope_kernel(
    X,
    Y,
    Y2,
    Cos,
    Sin,
    SIGN: ConstInt,
    OUTER: ConstInt,
    LENGTH: ConstInt,
    HEADS: ConstInt,
    SHARED: ConstInt,
    HALF: ConstInt,
    GROUP: ConstInt,
    TILE: ConstInt,
    TILE_REST: ConstInt,
    EXACT: ConstBool,
):
    _turn_rows(X, Y, Y2, Cos, Sin, SIGN, OUTER, LENGTH, HEADS, SHARED, HALF, GROUP, TILE, TILE_REST, EXACT)


@ct.kernel
def _rope_wide_kernel(
    X: ct.IndexedWithInt64,
    Y: ct.IndexedWithInt64,
    Y2: ct.IndexedWithInt64,
    Cos: ct.IndexedWithInt64,
    Sin: ct.IndexedWithInt64,
    SIGN: ConstInt,
    OUTER: ConstInt,
    LENGTH: ConstInt,
    HEADS: ConstInt,
    SHARED: ConstInt,
    HALF: ConstInt,
    GROUP: ConstInt,
    TILE: ConstInt,
    TILE_REST: ConstInt,
    EXACT: ConstBool,
):
    """The same for arrays of 2^31 elements or more, which need wider indices."""
    _turn_rows(X, Y, Y2, Cos, Sin, SIGN, OUTER, LENGTH, HEADS, SHARED, HALF, GROUP, TILE, TILE_REST, EXACT)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.cache
def _kernel(wide, masked):
    """Kernel with the hints for blocks with masks, or without."""
    kernel = _rope_kernel
    if wide:
        kernel = _rope_wide_kernel
    return kernel.replace_hints(**HINTS[masked])


def _is_wide(shape, steps):
    """Whether 32 bits are too few for the places of a tensor."""
    span = 0
    for n, step in zip(shape, steps, strict=True):
        span += n * step
    return span >= 2**31


@functools.lru_cache(maxsize=4096)
def _plan(shape, x_steps, y_steps, angles, cos_steps, sin_steps, in_place):
    """Kernel, grid and constants for x and the result of a shape with four axes."""
    half, rest = angles[-1], shape[3] - 2 * angles[-1]
    wide = _is_wide(shape, x_steps) or _is_wide(shape, y_steps)
    wide = wide or _is_wide(angles, cos_steps) or _is_wide(angles, sin_steps)

    # The axis of heads is the longest one along which angles do not change; of the others the longer one is tiled
    same = [n == 1 or c == s == 0 for n, c, s in zip(angles[:-1], cos_steps, sin_steps, strict=False)]
    same = [True] * (4 - len(angles)) + same
    shared = [d for d in range(3) if same[d] or shape[d] == 1]
    heads = max(shared, key=lambda d: shape[d], default=0)
    order = [*sorted((d for d in range(3) if d != heads), key=lambda d: shape[d]), heads]
    outer, length, copies = (shape[d] for d in order)
    group = min(half & -half, GROUP)
    groups = length * (half // group)
    tile = min(_power_of_two(groups), PAIRS // group)
    tile_rest = _power_of_two(ct.cdiv(rest, half // group)) if rest and not in_place else 0
    exact = groups % tile == 0
    grid = (outer * copies * ct.cdiv(groups, tile),)
    bits = same[0] + 2 * same[1] + 4 * same[2]
    return _kernel(wide, not exact), grid, (*order, bits, half, group, tile, tile_rest, exact)


def _launch(x, y, cos, sin, sign):
    """Turn the pairs of `x` into `y` by `sign` times the angles."""
    if x.ndim > 4:
        cos, sin = (t.expand(*x.shape[:-1], -1).reshape(-1, *x.shape[-3:-1], t.shape[-1]) for t in (cos, sin))
    if x.ndim != 4:
        leading = (1,) * (4 - x.ndim) if x.ndim < 4 else (-1,)
        x, y = (t.reshape(*leading, *t.shape[-3:]) for t in (x, y))
    steps = (x.stride(), y.stride(), tuple(cos.shape), cos.stride(), sin.stride())
    kernel, grid, constants = _plan(tuple(x.shape), *steps, x.data_ptr() == y.data_ptr())
    arrays = (x, y, y.narrow(3, cos.shape[-1], cos.shape[-1]))
    with torch.cuda.device(x.device):
        ct.launch(torch.cuda.current_stream(x.device), grid, kernel, (*arrays, cos, sin, sign, *constants))


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
