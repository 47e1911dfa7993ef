"""Which tensors are on the emulated device: those whose storage carries a mark.

Views, saved tensors and tensors made by autograd share the storage, hence the mark; it goes when the storage does. What
PyTorch itself sees is an ordinary tensor of the CPU.
"""

from collections.abc import Iterator
from typing import Any

import torch

DEVICE = torch.device("cuda", 0)
CPU = torch.device("cpu")
_MARK = "_tilewright_emulated_device"


def is_emulated(tensor: torch.Tensor) -> bool:
    """Whether the tensor is on the emulated device."""
    storage = _storage(tensor)
    return storage is not None and hasattr(storage, _MARK)


def place(tensor: torch.Tensor) -> torch.Tensor:
    """Put a tensor, with all that shares its memory, on the emulated device; returns it."""
    storage = _storage(tensor)
    if storage is not None:
        place_storage(storage)
    return tensor


def place_storage(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """Put memory on the emulated device; returns it."""
    setattr(storage, _MARK, True)
    return storage


def is_emulated_storage(storage: Any) -> bool:
    """Whether memory, as an untyped storage, is on the emulated device."""
    return hasattr(storage, _MARK)


def place_results(results: Any, arguments: list[torch.Tensor]) -> None:
    """Put the tensors among `results` on the emulated device, except those that share the memory of an argument."""
    theirs = {id(_storage(tensor)) for tensor in arguments}
    for result in tensors(results):
        if id(_storage(result)) not in theirs:
            place(result)


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value, also in nested tuples, lists and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)


def is_cuda(device: Any) -> bool:
    """Whether a device, by name, number or as a torch.device, is the emulated one.

    Raises:
        RuntimeError: It is a CUDA device other than the first.
    """
    if isinstance(device, int):
        kind, index = "cuda", device
    else:
        device = torch.device(device)
        kind, index = device.type, device.index or 0
    if kind == "cuda" and index != 0:
        raise RuntimeError(f"CUDA error: invalid device ordinal {index}; one device is emulated, cuda:0")
    return bool(kind == "cuda")


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """Memory of the tensor, inside of a transform of torch.func that of the tensor behind it; sparse ones have none."""
    with torch._C.DisableTorchFunction():
        while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            tensor = torch._C._functorch.get_unwrapped(tensor)
        try:
            return tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return None
