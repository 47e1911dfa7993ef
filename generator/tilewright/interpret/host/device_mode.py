"""The mode in which there is a CUDA device: PyTorch hands it every call that Python makes, in one thread."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextlib import nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.overrides import _get_current_function_mode_stack

from tilewright.interpret.host import torch_functions

Observer = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any], Any], None]


class DeviceMode(TorchFunctionMode):  # type: ignore[misc]
    """While active, tensors can be on a CUDA device.

    A function of PyTorch is one step, whatever it calls inside, where this is not active. What prints a tensor enters
    it again, to find its device; so does the backward pass (see `autograd`), which calls what users wrote. `observe`
    is told of each call when it is done: the function, its arguments and its results.
    """

    def __init__(self, observe: Observer | None = None) -> None:
        super().__init__()
        self.over = False  # there is no device any more, also for threads that have not left the mode
        self._observe = observe

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one function."""
        del types
        kwargs = kwargs or {}
        if self.over:
            return func(*args, **kwargs)
        if func is torch.Tensor.__repr__ or (func is torch.Tensor.__format__ and args[0].dim()):
            with self.entered():
                return torch._tensor_str._str(args[0], tensor_contents=kwargs.get("tensor_contents"))
        results = torch_functions.run(func, *args, **kwargs)
        if self._observe:
            self._observe(func, args, kwargs, results)
        return results

    def entered(self) -> AbstractContextManager[Any]:
        """The mode active in this thread, whether it is so already or not."""
        active = any(mode._observe is self._observe for mode in _active_modes())
        return nullcontext() if active else self


def is_active() -> bool:
    """Whether tensors that are made now in this thread can be on the device."""
    return bool(_active_modes())


def _active_modes() -> list[DeviceMode]:
    """Those of this thread."""
    return [mode for mode in _get_current_function_mode_stack() if isinstance(mode, DeviceMode) and not mode.over]
