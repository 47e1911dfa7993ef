"""The backward pass calls what users wrote, hooks and torch.autograd.Function, with gradients on the right device."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import saved_tensors_hooks

from tilewright.interpret.host.device_mode import DeviceMode
from tilewright.interpret.host.placement import is_emulated
from tilewright.interpret.host.placement import place
from tilewright.interpret.host.placement import tensors
from tilewright.interpret.host.substitution import Replacement

_OUTPUTS = "_tilewright_emulated_outputs"


def replacements(mode: DeviceMode) -> list[Replacement]:
    """What takes the place of which attributes of autograd's modules and classes."""
    return [
        (torch.autograd.graph, "_engine_run_backward", _in_mode(torch.autograd.graph._engine_run_backward, mode)),
        (saved_tensors_hooks, "__init__", _hooks_in_mode(saved_tensors_hooks.__init__, mode)),
        (torch.autograd.Function, "apply", classmethod(_recording(torch.autograd.Function.apply.__func__))),
        *(
            (BackwardCFunction, name, _placing(getattr(BackwardCFunction, name)))
            for name in ("apply", "apply_boxed")
            if hasattr(BackwardCFunction, name)  # the second is newer
        ),
    ]


def _hooks_in_mode(original: Callable[..., Any], mode: DeviceMode) -> Callable[..., Any]:
    """Makes hooks on saved tensors, which functions of PyTorch call, so that they run with the mode active."""

    def __init__(hooks: Any, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        original(hooks, _in_mode(pack_hook, mode), _in_mode(unpack_hook, mode))

    return __init__


def _in_mode(original: Callable[..., Any], mode: DeviceMode) -> Callable[..., Any]:
    """Runs with the mode active again what is called inside of a function of PyTorch."""

    @functools.wraps(original)
    def in_mode(*args: Any, **kwargs: Any) -> Any:
        with mode.entered():
            return original(*args, **kwargs)

    return in_mode


def _recording(original: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps with a node of the graph which of its outputs are on the emulated device."""

    def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
        outputs = original(cls, *args, **kwargs)
        with torch._C.DisableTorchFunction():
            items = outputs if isinstance(outputs, tuple) else (outputs,)
            flags = tuple(isinstance(item, torch.Tensor) and is_emulated(item) for item in items)
            for item in tensors(items):
                if any(flags) and isinstance(item.grad_fn, BackwardCFunction):
                    setattr(item.grad_fn, _OUTPUTS, flags)
        return outputs

    return apply


def _placing(original: Callable[..., Any]) -> Callable[..., Any]:
    """Puts the gradients, which autograd has made in its own memory, where the outputs are."""

    def apply(node: Any, *gradients: Any) -> Any:
        flags = getattr(node, _OUTPUTS, ())
        for gradient, emulated in zip(gradients, flags, strict=False):
            if emulated and isinstance(gradient, torch.Tensor):
                place(gradient)
        return original(node, *gradients)

    return apply
