"""Let host functions run without a GPU: tensors on device "meta" that look as if they were on one of a chosen kind.

For a child process only: `StandIn.install` changes torch.cuda for good.
"""

from contextlib import AbstractContextManager
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tilewright.cutile.targets import Target

_DEVICE = torch.device("cuda", 0)
_META = torch.device("meta")
_STREAM = SimpleNamespace(cuda_stream=0, device=_DEVICE, synchronize=lambda: None)


class OnMeta(TorchFunctionMode):  # type: ignore[misc]
    """While active, "cuda" means "meta" where a tensor is made, and a tensor says that it is on "cuda"."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Answer questions about the device, redirect everything else."""
        del types
        if func == torch.Tensor.device.__get__:
            return _DEVICE
        if func == torch.Tensor.is_cuda.__get__:
            return True
        if func == torch.Tensor.is_meta.__get__:
            return False
        if func == torch.Tensor.cuda:
            return args[0]
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        return func(*map(_redirect, args), **{name: _redirect(value) for name, value in (kwargs or {}).items()})


def _redirect(value: Any) -> Any:
    if isinstance(value, torch.device):
        return _META if value.type == "cuda" else value
    return _META if isinstance(value, str) and value.partition(":")[0] == "cuda" else value


class StandIn:
    """What host functions ask torch.cuda, answered as by one GPU of the architecture `target`."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def install(self) -> None:
        """Take the place of torch.cuda's functions, before anything imports them by name."""
        for name in (name for name in vars(StandIn) if not name.startswith("_") and name != "install"):
            setattr(torch.cuda, name, getattr(self, name))

    def is_available(self) -> bool:
        """There is a GPU."""
        return True

    def device_count(self) -> int:
        """There is one GPU."""
        return 1

    def current_device(self) -> int:
        """The first GPU is the current one."""
        return 0

    def get_device_capability(self, _device: Any = None) -> tuple[int, int]:
        """Capability of the target."""
        return self.target.capability

    def get_device_name(self, _device: Any = None) -> str:
        """Name of the target."""
        return f"{self.target.name} (compile only)"

    def get_device_properties(self, _device: Any = None) -> SimpleNamespace:
        """Properties of a typical GPU of the target."""
        major, minor = self.target.capability
        return SimpleNamespace(
            name=self.get_device_name(),
            major=major,
            minor=minor,
            multi_processor_count=self.target.multiprocessors,
            shared_memory_per_block_optin=self.target.shared_kib * 1024,
            total_memory=80 * 2**30,
            warp_size=32,
        )

    def current_stream(self, _device: Any = None) -> SimpleNamespace:
        """Stream that launches are recorded on."""
        return _STREAM

    def device(self, _device: Any) -> AbstractContextManager[None]:
        """Selecting the only GPU changes nothing."""
        return nullcontext()

    def stream(self, _stream: Any) -> AbstractContextManager[None]:
        """Selecting another stream changes nothing."""
        return nullcontext()

    def synchronize(self, _device: Any = None) -> None:
        """Nothing runs, so there is nothing to wait for."""

    def is_current_stream_capturing(self) -> bool:
        """No CUDA graph is being captured."""
        return False
