"""scale_add in cuTile."""

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]


@ct.kernel(occupancy=4)
def _scale_add_kernel(X, Y, Out, alpha, TILE_N: ConstInt):
    i = ct.bid(0)
    tx = ct.load(X, (i,), (TILE_N,), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ty = ct.load(Y, (i,), (TILE_N,), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Out, (i,), (tx + alpha * ty).astype(Out.dtype))


@ct.kernel
def _scale_add_bwd_kernel(Dout, Dy, alpha, TILE_N: ConstInt):
    i = ct.bid(0)
    t = ct.load(Dout, (i,), (TILE_N,), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Dy, (i,), (t * alpha).astype(Dy.dtype))


def _launch(kernel, out, args):
    tile = 2048 if torch.cuda.get_device_capability(out.device) >= (9, 0) else 1024
    if out.numel():
        with torch.cuda.device(out.device):
            ct.launch(torch.cuda.current_stream(), (ct.cdiv(out.numel(), tile),), kernel, (*args, tile))
    return out


class _ScaleAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, alpha):
        ctx.alpha = alpha
        out = torch.empty_like(x)
        return _launch(_scale_add_kernel, out, (x.view(-1), y.view(-1), out.view(-1), alpha))

    @staticmethod
    def backward(ctx, grad):
        dy = torch.empty_like(grad)
        return grad, _launch(_scale_add_bwd_kernel, dy, (grad.view(-1), dy.view(-1), ctx.alpha)), None


@register_impl("scale_add", backend="cutile")
def scale_add(
    x: torch.Tensor,
    y: torch.Tensor,
    alpha: float = 1.0,
    out: torch.Tensor | None = None,
    **kwargs,
) -> torch.Tensor:
    if kwargs:
        raise TypeError(f"scale_add (cutile) got unexpected arguments: {', '.join(kwargs)}")
    for name, tensor in (("x", x), ("y", y)):
        if not tensor.is_cuda:
            raise ValueError(f"{name} is on {tensor.device}; it must be on a CUDA device")
    if out is None and torch.is_grad_enabled() and (x.requires_grad or y.requires_grad):
        return _ScaleAdd.apply(x, y, alpha)
    out = torch.empty_like(x) if out is None else out
    return _launch(_scale_add_kernel, out, (x.view(-1), y.view(-1), out.view(-1), alpha))
