"""cuTile backend of lstm_cell."""

import functools
from dataclasses import dataclass
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]

ZERO = ct.PaddingMode.ZERO
GATES = 4


@dataclass(frozen=True)
class _Config:
    """A tile (rows, units, K) of each of four sums, a hint, and what it is for."""

    tile: tuple[int, int, int]
    num_worker_warps: int = 8
    most_rows: int = 2**31

    @functools.cached_property
    def kernel(self):
        """Kernel with the hint."""
        kernel = _lstm_cell_kernel
        return kernel.replace_hints(num_worker_warps=self.num_worker_warps)

    def suits(self, multiprocessors, rows, tiles):
        """Whether nearly all multiprocessors are busy with tiles that are at least half full."""
        return self.tile[0] < 2 * rows and tiles / multiprocessors >= 0.9


# By bytes of an element and the first major compute capability that they are for; of those that allow as many rows, the
# first that suits is taken, else the last. Chosen by the registers that they need, those of 9 with 4 warps on an H200.
CONFIGS = {
    2: {
        8: (_Config((64, 32, 32)), _Config((32, 32, 32))),
        9: (
            _Config((16, 16, 128), most_rows=16),
            _Config((128, 64, 64)),
            _Config((64, 64, 64), 4),
            _Config((64, 32, 128), 4),
            _Config((64, 16, 128), 4),
            _Config((64, 16, 64), 4),
        ),
        12: (_Config((64, 32, 64)), _Config((64, 16, 64))),
    },
    4: {8: (_Config((32, 32, 16)),)},
}


def _divide(a, b):
    # The hardware's reciprocal: 2 ulp, and zero for b beyond 2^126.
    return ct.truediv(a, b, rounding_mode=ct.RoundingMode.APPROX, flush_to_zero=True)


def _sigmoid(x):
    return _divide(1.0, 1.0 + ct.exp(-x))


def _add_products(A, W, sums, m, n, TILE_M, TILE_N, TILE_K):
    """Tile (m, n) of sums for each gate, with A (M, K) @ W (gates, K, H) added."""
    for k in range(ct.num_tiles(A, 1, (TILE_M, TILE_K))):
        ta = ct.load(A, (m, k), (TILE_M, TILE_K), padding_mode=ZERO)
        added = ()
        for gate in ct.static_iter(range(GATES)):
            tw = ct.load(W, (gate, k, n), (1, TILE_K, TILE_N), padding_mode=ZERO).reshape((TILE_K, TILE_N))
            added += (ct.mma(ta, tw, sums[gate]),)
        sums = added
    return sums


def _bias(B, gate, n, TILE_N):
    """Those of a gate that belong to tile `n` of its units; behind the last unit it does not matter what they are."""
    unit = n * TILE_N + ct.arange(TILE_N, dtype=ct.int32)
    return ct.gather(B, B.shape[0] // GATES * gate + unit).astype(ct.float32)[None, :]


@ct.kernel
def _lstm_cell_kernel(
    X, H, C, Wx, Wh, Bx, Bh, NextH, NextC, BIAS: ConstBool, TILE_M: ConstInt, TILE_N: ConstInt, TILE_K: ConstInt
):
    """Next states (M, H) from X (M, I), H and C (M, H); the gates are i, f, g and o."""
    tiles_m = ct.cdiv(H.shape[0], TILE_M)
    m, n = ct.bid(0) % tiles_m, ct.bid(0) // tiles_m  # blocks side by side read the same weights
    zeros = ct.zeros((TILE_M, TILE_N), ct.float32)
    sums = _add_products(X, Wx, (zeros, zeros, zeros, zeros), m, n, TILE_M, TILE_N, TILE_K)
    ti, tf, tg, to = _add_products(H, Wh, sums, m, n, TILE_M, TILE_N, TILE_K)
    if BIAS:
        ti = ti + _bias(Bx, 0, n, TILE_N) + _bias(Bh, 0, n, TILE_N)
        tf = tf + _bias(Bx, 1, n, TILE_N) + _bias(Bh, 1, n, TILE_N)
        tg = tg + _bias(Bx, 2, n, TILE_N) + _bias(Bh, 2, n, TILE_N)
        to = to + _bias(Bx, 3, n, TILE_N) + _bias(Bh, 3, n, TILE_N)
    tstate = ct.load(C, (m, n), (TILE_M, TILE_N), padding_mode=ZERO).astype(ct.float32)
    tstate = _sigmoid(tf) * tstate + _sigmoid(ti) * ct.tanh(tg)
    ct.store(NextC, (m, n), tstate.astype(NextC.dtype))
    ct.store(NextH, (m, n), (_sigmoid(to) * ct.tanh(tstate)).astype(NextH.dtype))


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
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


def _configs(properties, itemsize):
    """The row of the table for a device."""
    generations = CONFIGS[itemsize]
    return generations[max(major for major in generations if major <= properties.major)]


@functools.lru_cache(maxsize=4096)
def _plan(device, itemsize, rows, units):
    """Choose (kernel, blocks, tile) for states of this size."""
    properties = torch.cuda.get_device_properties(device)
    for config in _configs(properties, itemsize):
        tiles = ct.cdiv(rows, config.tile[0]) * ct.cdiv(units, config.tile[1])
        if rows <= config.most_rows and config.suits(properties.multi_processor_count, rows, tiles):
            break
    return config.kernel, tiles, config.tile


@functools.lru_cache(maxsize=4096)
def _check_shapes(x, h, w_ih, w_hh, **others):
    """Require shapes that fit x (..., I) and h (..., H); of the others, what is not a state is a bias."""
    if not x:
        raise ValueError(f"x has shape {x}; it must be (..., I)")
    if not h or h[:-1] != x[:-1]:
        raise ValueError(f"h has shape {h} beside x {x}; it must be (..., H)")
    units = h[-1]
    wanted = {"w_ih": (GATES * units, x[-1]), "w_hh": (GATES * units, units), "c": h}
    for name, found in {"w_ih": w_ih, "w_hh": w_hh, **others}.items():
        shape = wanted.get(name, (GATES * units,))
        if found != shape:
            raise ValueError(f"{name} has shape {found} beside x {x} and h {h}; it must be {shape}")


def _rows(x):
    """See x (..., columns) as a matrix that TMA can read."""
    return _readable(x if x.ndim == 2 else x.reshape(-1, x.shape[-1]))


def _gates(weight):
    """The weight (gates * H, K) of a layer as the kernel reads it, (gates, K, H)."""
    return _readable(weight).view(GATES, -1, weight.shape[1]).mT


def _overruns(out):
    """Whether TMA, which stores 16 bytes at a time, would write beside `out`."""
    unit = 16 // out.element_size()  # elements in 16 bytes
    axes = {step: n for n, step in zip(out.shape, out.stride(), strict=True) if n > 1}
    length = axes.pop(1, 0)  # of a row; one of a single element is stored without TMA
    return length % unit > 0 and out.data_ptr() % 16 == 0 and all(step % unit == 0 for step in axes)


def _own(out, *operands):
    """`out`, or a tensor of its own where `out` is strided, overruns, or may overlap what is still read."""
    shared = any(x.untyped_storage().data_ptr() == out.untyped_storage().data_ptr() for x in operands)
    direct = out.is_contiguous() and not shared and not _overruns(out)
    return out if direct else torch.empty(out.shape, dtype=out.dtype, device=out.device)


@register_impl("lstm_cell", backend="cutile")
def lstm_cell(
    x: torch.Tensor,
    h: torch.Tensor,
    c: torch.Tensor,
    w_ih: torch.Tensor,
    w_hh: torch.Tensor,
    b_ih: torch.Tensor | None = None,
    b_hh: torch.Tensor | None = None,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One step of torch.nn.LSTMCell, the next hidden state and the next cell state, in one kernel."""
    if kwargs:
        raise TypeError(f"lstm_cell got unexpected arguments: {', '.join(kwargs)}")
    biases = {name: b for name, b in (("b_ih", b_ih), ("b_hh", b_hh)) if b is not None}
    operands = {"x": x, "h": h, "c": c, "w_ih": w_ih, "w_hh": w_hh, **biases}
    _check_operands(**operands)
    _check_shapes(**{name: tuple(x.shape) for name, x in operands.items()})
    if out is None:
        out = results = tuple(torch.empty_like(h, memory_format=torch.contiguous_format) for _ in range(2))
    elif len(out) != 2:
        raise ValueError(f"out is {len(out)} tensors; it must be 2, the next h and the next c")
    else:
        for tensor in out:
            if tensor.shape != h.shape or tensor.dtype != h.dtype or tensor.device != h.device:
                found = f"{tuple(tensor.shape)} of {tensor.dtype} on {tensor.device}"
                raise ValueError(f"out has {found}; it must be {tuple(h.shape)} of {h.dtype} on {h.device}")
        results = [_own(tensor, *operands.values()) for tensor in out]
    if h.numel() == 0:
        return out
    units = h.shape[-1]
    if x.shape[-1] == 0:  # the sum of nothing is zero, as is the product of zeros
        x, w_ih = x.new_zeros((*x.shape[:-1], 1)), w_ih.new_zeros((len(w_ih), 1))
    state = _rows(h)
    b_ih, b_hh = (x if not biases else h.new_zeros(GATES * units) if b is None else b for b in (b_ih, b_hh))
    arrays = (_rows(x), state, _rows(c), _gates(w_ih), _gates(w_hh), b_ih, b_hh)
    arrays += tuple(y if y.ndim == 2 else y.view(-1, units) for y in results)
    kernel, blocks, tile = _plan(x.device, x.element_size(), *state.shape)
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        ct.launch(stream, (blocks,), kernel, (*arrays, bool(biases), *tile))
    for tensor, result in zip(out, results, strict=True):
        if result is not tensor:
            tensor.copy_(result)
    return out
