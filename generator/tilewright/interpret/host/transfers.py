"""Copies between the CPU and the emulated device, which autograd follows in both directions."""

from typing import Any

import torch

from tilewright.interpret.host.placement import CPU
from tilewright.interpret.host.placement import is_cuda
from tilewright.interpret.host.placement import is_emulated
from tilewright.interpret.host.placement import place


class Transfer(torch.autograd.Function):  # type: ignore[misc]
    """Copy a tensor to the emulated device or from it; its gradient goes the other way."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, to_cuda: bool) -> torch.Tensor:
        """A copy of `x` on the other device."""
        ctx.to_cuda = to_cuda
        with torch._C.DisableTorchFunction():
            copy = x.detach().clone()
        return place(copy) if to_cuda else copy

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """The gradient, copied back."""
        return Transfer.apply(gradient, not ctx.to_cuda), None


def to(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """`Tensor.to` with all its signatures, for either device as source and as target."""
    was_cuda = to_cuda = is_emulated(x)
    on_cpu = list(args)
    for position, value in enumerate(args):
        if isinstance(value, torch.Tensor):
            to_cuda = is_emulated(value)
        elif isinstance(value, (torch.device, str)) or (position == 0 and type(value) is int):
            to_cuda = is_cuda(value)
            on_cpu[position] = CPU if to_cuda else value
    if isinstance(other := kwargs.get("other"), torch.Tensor):
        to_cuda = is_emulated(other)
    if (device := kwargs.get("device")) is not None:
        to_cuda = is_cuda(device)
        kwargs = {**kwargs, "device": CPU if to_cuda else device}
    with torch._C.DisableTorchFunction():
        result = x.to(*on_cpu, **kwargs)
    if was_cuda and result is not x:
        place(result)
    return result if was_cuda == to_cuda else Transfer.apply(result, to_cuda)
