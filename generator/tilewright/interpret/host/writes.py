"""Which memory PyTorch's functions leave unwritten and which they write, for the check of what kernels read."""

from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import torch

from tilewright.interpret.check import fresh
from tilewright.interpret.check import written
from tilewright.interpret.host.placement import tensors

_TENSOR = torch.Tensor
_UNWRITTEN = {
    *(torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted),
    *(_TENSOR.new_empty, _TENSOR.new_empty_strided),
}
_SHARED = {_TENSOR.numpy, _TENSOR.__array__, _TENSOR.__dlpack__}  # others may write it


def note_writes(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], results: Any) -> None:
    """Take note of what a call wrote, or made without writing it; a call that may have written something did."""
    if func in _UNWRITTEN and kwargs.get("out") is None:
        fresh(results)
    else:
        for tensor in _written(func, args, kwargs):
            written(tensor)


def _written(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
    yield from tensors(kwargs.get("out"))
    name = getattr(func, "__name__", "")
    if func is _TENSOR.__setitem__:
        x, index = args[:2]
        part = x[index]
        yield part if part.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() else x
    elif func in _SHARED or name.startswith("__i") or (name.endswith("_") and not name.endswith("__")):
        yield from tensors(args[0] if args else kwargs)  # the first, or the first list
