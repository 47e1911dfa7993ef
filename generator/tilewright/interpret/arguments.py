"""Turn the arguments of a launch into the flat values that a translated kernel takes, and into memory it may touch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tilewright.cutile.signature import item_annotations
from tilewright.interpret.faults import LaunchError
from tilewright.interpret.memory.allocations import Memory
from tilewright.interpret.memory.arrays import ArrayList
from tilewright.interpret.numbers.dtypes import INT32


def as_tensors(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments with every array as a tensor on the CPU, over the same memory.

    Raises TypeError for a numpy array, and `LaunchError` for an array on another device.
    """
    return tuple(map(_as_tensor, arguments))


def _as_tensor(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu" or value.layout is not torch.strided:
            raise LaunchError(
                f"the launch passes a {value.layout} tensor on {value.device}; "
                "the interpreter runs on strided tensors in the memory of the CPU\n"
                "pass tensor.cpu(), of a sparse one tensor.to_dense()"
            )
        _require_own_memory(value)
        return value
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, tuple):
        return tuple(map(_as_tensor, value))
    if isinstance(value, list):
        return list(map(_as_tensor, value))
    if hasattr(value, "__array_interface__"):
        pass_instead = "torch.from_numpy(array)" if value.shape else "its item(), a number of Python"
        raise TypeError(f"a launch cannot pass {type(value).__name__} of NumPy, on a GPU neither; pass {pass_instead}")
    if hasattr(value, "__dlpack__"):
        return _as_tensor(torch.from_dlpack(value))
    if hasattr(value, "__cuda_array_interface__"):
        raise LaunchError(
            "the launch passes an array on a GPU; the interpreter runs in the memory of the CPU\ncopy the array there"
        )
    return value


def _require_own_memory(tensor: torch.Tensor) -> None:
    """Raises `LaunchError` for a tensor that is computed from another one, or that stands for others."""
    if tensor.is_neg():
        raise LaunchError("the launch passes a view whose memory has the other sign\npass tensor.resolve_neg()")
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        raise LaunchError(
            "the launch passes a tensor of a transform of torch.func, which has no memory\n"
            "launch in a torch.autograd.Function with setup_context and vmap"
        )
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        raise LaunchError(
            f"the launch passes a {type(tensor).__name__}, which has no memory of its own\npass the tensors behind it"
        )


@dataclass(slots=True)
class FlatArguments:
    """Flat arguments of a launch, as they are collected.

    Two launches of one kernel have the same signature if their `key` is the same.
    """

    key: list[Any]
    values: list[Any]
    memory: Memory


def flatten(arguments: Sequence[Any], annotations: Sequence[Any], names: Sequence[str]) -> FlatArguments:
    """Flat arguments for arguments that `as_tensors` returned."""
    flat = FlatArguments([], [], Memory())
    for argument, annotation, name in zip(arguments, annotations, names, strict=True):
        _flatten(argument, annotation, name, flat)
    return flat


def _flatten(value: Any, annotation: Any, name: str, flat: FlatArguments) -> None:
    if isinstance(value, tuple):
        flat.key += (tuple, len(value))
        for place, (item, each) in enumerate(zip(value, item_annotations(annotation, len(value)), strict=True)):
            _flatten(item, each, f"{name}[{place}]", flat)
    elif getattr(annotation, "constant", False):
        flat.key.append(_constant_key(value))
    elif isinstance(value, torch.Tensor):
        flat.values += _array(value, name, flat)
    elif isinstance(value, list):
        flat.key += (list, len(value))
        items = [_array(item, f"{name}[{place}]", flat) for place, item in enumerate(value)]
        flat.values += (ArrayList(tuple(items)), len(items))
    elif isinstance(value, float):
        flat.key.append(float)
        flat.values.append(torch.tensor([value], dtype=torch.float32))
    else:
        wide = isinstance(value, int) and not INT32.lowest <= value <= INT32.highest
        flat.key.append(value if wide else type(value))
        flat.values.append(value)


def _constant_key(value: Any) -> Any:
    """What is equal for the same constants only: 1, 1.0 and True are equal in Python."""
    if isinstance(value, float):
        return value.hex()
    return (type(value), value) if isinstance(value, int) else object()


def _array(tensor: torch.Tensor, name: str, flat: FlatArguments) -> tuple[int, ...]:
    shape, strides = tensor.shape, tensor.stride()
    flat.memory.add(tensor, name)
    address = tensor.data_ptr()
    flat.key += (tensor.dtype, shape, strides, tensor.storage_offset() % 16)
    return (address, *shape, *strides)
