"""cuTile backend of gelu."""

from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstBool = ct.Constant[bool]

TILE = 2048  # elements of a tile
TILE_STRIDED = 64  # columns of a tile where a tensor is not contiguous along the last axis
OCCUPANCY = ct.ByTarget(sm_90=8)  # of sm_90 measured with gelu; elsewhere the compiler chooses


def _divide(a, b):
    # The hardware's reciprocal: 2 ulp, and zero for b beyond 2^126.
    return ct.truediv(a, b, rounding_mode=ct.RoundingMode.APPROX, flush_to_zero=True)


def _ndtr(x):
    # The lower tail is exp(-x^2 / 2) times a polynomial in t, absolute error 1e-8.
    t = _divide(1.0, 1.0 + 0.38890873 * ct.abs(x))
    p = t * (-0.0207141604 + t * (0.379858616 + t * (-0.25902003 + t * 0.053662466)))
    tail = t * (0.150791658 + t * (0.195421459 + p)) * ct.exp2(-0.72134752 * x * x, flush_to_zero=True)
    return ct.where(x < 0.0, tail, 1.0 - tail)


def _gelu(x):
    return x * _ndtr(x)


def _place(A, TILE):
    """Rows and columns of this block's tile of A."""
    i, j = ct.bid(1), ct.bid(0)
    rows = i * TILE[0] + ct.arange(TILE[0], dtype=ct.int32)
    columns = j * TILE[1] + ct.arange(TILE[1], dtype=ct.int32)
    return rows[:, None], columns[None, :]


def _load(A, TILE, STRIDED):
    """This block's tile of A in fp32; out of bounds it is 0."""
    if STRIDED:  # turned in shared memory
        index = (ct.bid(1), ct.bid(0))
        tile = ct.load(A, index, TILE, padding_mode=ct.PaddingMode.ZERO)
    else:  # compiles to fewer instructions
        tile = ct.gather(A, _place(A, TILE))
    return tile.astype(ct.float32)


@ct.kernel(num_worker_warps=4, occupancy=OCCUPANCY)
def _gelu_kernel(
    X,
    Out,
    TILE: ct.Constant,
    STRIDED: ConstBool,
):
    tx = _load(X, TILE, STRIDED)
    tout = _gelu(tx)
    ct.scatter(Out, _place(Out, TILE), tout.astype(Out.dtype))


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _check(name, tensor):
    if not isinstance(tensor, torch.Tensor) or tensor.dtype not in _DTYPES:
        found = getattr(tensor, "dtype", type(tensor).__name__)
        raise TypeError(f"{name} is {found}; it must be a tensor of float32, float16, bfloat16")
    if not tensor.is_cuda:
        raise ValueError(f"{name} is on {tensor.device}; it must be on a CUDA device")


def _result(inputs, shape, out):
    """Tensor that the kernel writes; not `out` where that is not contiguous or shares memory with another view."""
    first = inputs[0]
    if out is None:
        result = torch.empty_like(first)
        if all(t.shape == shape and t.stride() == result.stride() for t in inputs):
            return result
        return torch.empty(shape, dtype=first.dtype, device=first.device)
    if out.shape != shape or out.dtype != first.dtype or out.device != first.device:
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be {tuple(shape)} of {first.dtype} on {first.device}")
    memory = out.untyped_storage().data_ptr()
    for t in inputs:
        same = t.data_ptr() == out.data_ptr() and t.shape == shape and t.stride() == out.stride()
        if t.untyped_storage().data_ptr() == memory and not same:
            return torch.empty(shape, dtype=out.dtype, device=out.device)
    return out if out.is_contiguous() else torch.empty(shape, dtype=out.dtype, device=out.device)


def _pieces(n):
    """Start and length of at most 2^30 elements; the last n % 16 apart, so that the others are read as vectors."""
    whole = n - n % 16 if n > 2**16 else n
    for start in range(0, whole, 2**30):
        yield start, min(2**30, whole - start)
    if whole < n:
        yield whole, n - whole


def _launch(kernel, inputs, results, constants):
    """Launch over one long row where all tensors lie in memory alike, else over rows along the last axis."""
    shape, stride = results[0].shape, results[0].stride()
    tensors = [*inputs, *results]
    with torch.cuda.device(results[0].device):
        if all(t.shape == shape and t.stride() == stride for t in tensors):
            for start, n in _pieces(results[0].numel()):
                row = [t.as_strided((1, n), (n, 1), t.storage_offset() + start) for t in tensors]
                _launch_rows(kernel, row, len(inputs), constants)
        else:
            rows = [t.expand(shape).reshape(-1, shape[-1]) for t in tensors]
            rows = [t if max(t.stride()) < 2**31 else t.contiguous() for t in rows]
            _launch_rows(kernel, rows, len(inputs), constants)


def _launch_rows(kernel, tensors, inputs, constants):
    strided = any(t.stride(1) != 1 and t.shape[1] > 1 for t in tensors)
    if strided and tensors[-1].shape[0] == 1:
        tensors = [t.mT for t in tensors]
    m, n = tensors[-1].shape
    most_n = TILE_STRIDED if strided else TILE
    tile_n = min(1 << (n - 1).bit_length(), most_n)
    tile_m = min(1 << (m - 1).bit_length(), TILE // tile_n)
    tiles = []
    # Rows that the second axis of a grid reaches, and whose elements 32 bits count.
    most = min(65535 * tile_m, 2**31 // max(t.stride(0) for t in tensors))
    for start in range(0, m, most):
        part = tensors if m <= most else [t[start : start + most] if t.shape[0] > 1 else t for t in tensors]
        grid = (ct.cdiv(n, tile_n), ct.cdiv(part[-1].shape[0], tile_m))
        arguments = (*part, *constants, *tiles, (tile_m, tile_n), strided)
        ct.launch(torch.cuda.current_stream(), grid, kernel, arguments)


def _forward(inputs, constants, out=None):
    result = _result(inputs, inputs[0].shape, out)
    if result.numel() > 0:
        _launch(_gelu_kernel, inputs, (result,), constants)
    if out is None or result is out:
        return result
    return out.copy_(result)


@register_impl("gelu", backend="cutile")
def gelu(
    x: torch.Tensor,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Compute gelu(x) element by element."""
    if kwargs:
        raise TypeError(f"gelu got unexpected arguments: {', '.join(kwargs)}")
    inputs = (x,)
    _check("x", x)
    constants = ()
    return _forward(inputs, constants, out)
