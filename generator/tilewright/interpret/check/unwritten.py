"""Which bytes of tensors nobody has written yet, known of those that `fresh` was told of."""

from __future__ import annotations

import threading
import weakref

import torch
from torch import Tensor

_lock = threading.Lock()
_unwritten: dict[int, Tensor] = {}  # by the address of a storage: bool of each of its bytes; gone with the storage


def fresh(tensor: Tensor) -> None:
    """Take note that nothing is in the storage of `tensor` (on the CPU) yet, as of one that torch.empty returned."""
    storage = tensor.untyped_storage()
    address, size = storage.data_ptr(), storage.nbytes()
    if size == 0:
        return
    with _lock:
        _unwritten[address] = torch.ones(size, dtype=torch.bool)
    weakref.finalize(storage, _forget, address)


def written(tensor: Tensor) -> None:
    """Take note that something has written all elements of `tensor`, as torch operations in place do."""
    unwritten = unwritten_bytes(tensor.untyped_storage().data_ptr())
    if unwritten is None:
        return
    size = tensor.element_size()
    sizes = (*tensor.shape, size)
    strides = (*(stride * size for stride in tensor.stride()), 1)
    # An expanded tensor has several elements at one place, all of which get the same value.
    unwritten.as_strided(sizes, strides, tensor.storage_offset() * size).zero_()


def unwritten_bytes(address: int) -> Tensor | None:
    """Whether each byte of the storage at an address is unwritten, as a tensor to be updated; None if all are."""
    with _lock:
        return _unwritten.get(address)


def _forget(address: int) -> None:
    with _lock:
        _unwritten.pop(address, None)
