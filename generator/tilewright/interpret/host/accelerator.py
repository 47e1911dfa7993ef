"""What torch.accelerator says where a CUDA device is emulated: the device is the accelerator."""

from collections.abc import Callable
from typing import Any

import torch

from tilewright.interpret.host.cuda import CudaDevice
from tilewright.interpret.host.substitution import Replacement


def replacements(device: CudaDevice) -> list[Replacement]:
    """What takes the place of which attributes of torch.accelerator; older releases have fewer."""
    functions: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "current_accelerator": lambda **_options: torch.device("cuda"),
        "device_count": lambda: device.device_count(),
        "current_device_index": lambda: device.current_device(),
        "current_device_idx": lambda: device.current_device(),
        "set_device_index": lambda index: device.set_device(index),
        "set_device_idx": lambda index: device.set_device(index),
        "device_index": lambda index: device.device(index),
        "current_stream": lambda index=None: device.current_stream(index),
        "set_stream": lambda stream: device.set_stream(stream),
        "synchronize": lambda index=None: device.synchronize(index),
        "empty_cache": lambda: device.empty_cache(),
    }
    return [
        (torch.accelerator, name, function) for name, function in functions.items() if hasattr(torch.accelerator, name)
    ]
