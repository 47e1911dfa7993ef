"""cuTile backend of silu_and_mul."""

import functools
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]

# Elements of a tile, of whole rows where they fit, measured on sm_90.
ROWS = 8192
PART_OF_ROW = 4096
WARPS = 8
CTAS = {ROWS: ct.ByTarget(sm_90=4), PART_OF_ROW: ct.ByTarget(sm_90=2)}  # that share it; elsewhere a block is on its own


def _place(TILE_M, TILE_N):
    """Rows and columns of this block's tile."""
    rows = ct.bid(1) * TILE_M + ct.arange(TILE_M, dtype=ct.int32)
    columns = ct.bid(0) * TILE_N + ct.arange(TILE_N, dtype=ct.int32)
    return rows[:, None], columns[None, :]


def _sigmoid(x):
    d = 1.0 + ct.exp2(-1.44269504 * x, flush_to_zero=True)
    return ct.truediv(1.0, d, rounding_mode=ct.RoundingMode.APPROX, flush_to_zero=True)


@ct.kernel(num_worker_warps=WARPS)
def _silu_and_mul_kernel(
    Gate,
    Up,
    Out,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
):
    # Out of bounds, gather reads 0 and scatter writes nothing.
    place = _place(TILE_M, TILE_N)
    tgate = ct.gather(Gate, place).astype(ct.float32)
    tup = ct.gather(Up, place).astype(ct.float32)
    tout = tgate * _sigmoid(tgate) * tup
    ct.scatter(Out, place, tout.astype(Out.dtype))


@ct.kernel(num_worker_warps=WARPS)
def _silu_and_mul_backward_kernel(
    Gate,
    Up,
    Grad,
    DGate,
    DUp,
    TILE_M: ConstInt,
    TILE_N: ConstInt,
):
    place = _place(TILE_M, TILE_N)
    tgate = ct.gather(Gate, place).astype(ct.float32)
    tup = ct.gather(Up, place).astype(ct.float32)
    tgrad = ct.gather(Grad, place).astype(ct.float32)
    # The derivative of x s(x) is s(x) + x s(x) (1 - s(x)).
    s = _sigmoid(tgate)
    act = tgate * s
    slope = s + act * (1.0 - s)
    ct.scatter(DGate, place, (tgrad * tup * slope).astype(DGate.dtype))
    ct.scatter(DUp, place, (tgrad * act).astype(DUp.dtype))


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _check(name, tensor):
    if not isinstance(tensor, torch.Tensor) or tensor.dtype not in _DTYPES:
        found = getattr(tensor, "dtype", type(tensor).__name__)
        raise TypeError(f"{name} is {found}; it must be a tensor of float32, float16, bfloat16")
    if not tensor.is_cuda:
        raise ValueError(f"{name} is on {tensor.device}; it must be on a CUDA device")


def _rows(tensor):
    """The tensor as a matrix whose rows are contiguous."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    return rows if rows.stride(1) == 1 and rows.stride(0) < 2**31 else rows.contiguous()


@functools.cache
def _shared(kernel, size):
    """The kernel with cooperating blocks for a tile of that size."""
    return kernel.replace_hints(num_ctas=CTAS[size])


def _launch(kernel, *tensors):
    m, n = tensors[0].shape
    size = ROWS if n <= ROWS else PART_OF_ROW
    tile_n = min(1 << (n - 1).bit_length(), size)
    tile_m = min(1 << (m - 1).bit_length(), size // tile_n)
    if tile_m * tile_n == size:
        kernel = _shared(kernel, size)
    # Rows that the second axis of a grid reaches, and whose elements 32 bits count.
    most = min(65535 * tile_m, 2**31 // max(t.stride(0) for t in tensors))
    with torch.cuda.device(tensors[0].device):
        stream = torch.cuda.current_stream()
        for start in range(0, m, most):
            part = tensors if m <= most else [t[start : start + most] for t in tensors]
            grid = (ct.cdiv(n, tile_n), ct.cdiv(part[0].shape[0], tile_m))
            ct.launch(stream, grid, kernel, (*part, tile_m, tile_n))


def _forward(x, out=None):
    if out is None:
        out = x.new_empty((*x.shape[:-1], x.shape[-1] // 2))
    if out.numel() > 0:
        result = out if out.is_contiguous() else torch.empty_like(out, memory_format=torch.contiguous_format)
        gate, up = _rows(x).chunk(2, dim=1)
        _launch(_silu_and_mul_kernel, gate, up, _rows(result))
        if result is not out:
            out.copy_(result)
    return out


class _SiluAndMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return _forward(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x, memory_format=torch.contiguous_format)
        if grad.numel() > 0:
            gate, up = _rows(x).chunk(2, dim=1)
            dgate, dup = _rows(dx).chunk(2, dim=1)
            tensors = (gate, up, _rows(grad), dgate, dup)
            _launch(_silu_and_mul_backward_kernel, *tensors)
        return dx


@register_impl("silu_and_mul", backend="cutile")
def silu_and_mul(
    x: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """SiLU of the first half of the last dimension times the second half."""
    if kwargs:
        raise TypeError(f"silu_and_mul got unexpected arguments: {', '.join(kwargs)}")
    _check("x", x)
    if x.ndim == 0 or x.shape[-1] % 2 != 0:
        raise ValueError(f"x has shape {tuple(x.shape)}; its last dimension must be even, for two halves")
    shape = (*x.shape[:-1], x.shape[-1] // 2)
    if out is not None and (out.shape != shape or out.dtype != x.dtype or out.device != x.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {tuple(shape)} of {x.dtype} on {x.device}")
    if torch.is_grad_enabled() and x.requires_grad:
        if out is not None:
            raise ValueError("out is given and an input requires a gradient; only one of the two is possible")
        return _SiluAndMul.apply(x)
    return _forward(x, out)
