"""The mode in which there is a CUDA device: PyTorch hands it every call that Python makes, in one thread."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextlib import nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.overrides import _get_current_function_mode_stack

from tilewright.interpret.host import torch_functions


class DeviceMode(TorchFunctionMode):  # type: ignore[misc]
    """While active, tensors can be on a CUDA device.

    A function of PyTorch is one step, whatever it calls inside, where this is not active. What prints a tensor enters
    it again, to find its device; so does the backward pass (see `autograd`), which calls what users wrote.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one function."""
        del types
        entering = _ENTERING.get(func)
        if entering:
            return entering(func, *args, **(kwargs or {}))
        return torch_functions.run(func, *args, **(kwargs or {}))


def device_mode() -> AbstractContextManager[Any]:
    """The mode, to be entered; where it is active already, nothing."""
    active = any(isinstance(mode, DeviceMode) for mode in _get_current_function_mode_stack())
    return nullcontext() if active else DeviceMode()


def _repr(_func: Any, x: torch.Tensor, *, tensor_contents: str | None = None) -> str:
    with device_mode():
        return str(torch._tensor_str._str(x, tensor_contents=tensor_contents))


def _format(func: Any, x: torch.Tensor, specification: str) -> str:
    return str(func(x, specification)) if x.dim() == 0 or specification else _repr(func, x)


_ENTERING: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.Tensor.__repr__: _repr,
    torch.Tensor.__format__: _format,
}
