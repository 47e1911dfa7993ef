"""Files of torch.save and pickles: tensors come back on the device that they were on, or where `map_location` says."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import serialization

from tilewright.interpret.host.placement import DEVICE
from tilewright.interpret.host.placement import is_emulated_storage
from tilewright.interpret.host.placement import place_storage

_PRIORITY = 5  # asked before the CPU, which is 10, and CUDA, which is 20


@contextmanager
def emulated_locations() -> Iterator[None]:
    """Let PyTorch know the emulated device as a location of memory."""
    serialization.register_package(_PRIORITY, _location, _restore)
    entry = (_PRIORITY, _location, _restore)
    try:
        yield
    finally:
        serialization._package_registry.remove(entry)


def _location(storage: torch.UntypedStorage) -> str | None:
    return str(DEVICE) if is_emulated_storage(storage) else None


def _restore(storage: torch.UntypedStorage, location: str) -> torch.UntypedStorage | None:
    return place_storage(storage) if location.partition(":")[0] == "cuda" else None
