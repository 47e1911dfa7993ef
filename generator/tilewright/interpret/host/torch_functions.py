"""What a function of PyTorch does while a device is emulated: the same on the CPU, and its results are placed."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils._device import _device_constructors

from tilewright.interpret.host.placement import CPU
from tilewright.interpret.host.placement import DEVICE
from tilewright.interpret.host.placement import is_cuda
from tilewright.interpret.host.placement import is_emulated
from tilewright.interpret.host.placement import place
from tilewright.interpret.host.placement import place_results
from tilewright.interpret.host.placement import tensors
from tilewright.interpret.host.transfers import to

Function = Callable[..., Any]
_NO_NUMPY = (
    "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
)


def run(func: Function, *args: Any, **kwargs: Any) -> Any:
    """Run a function of PyTorch as it would run on a machine with a GPU.

    Raises:
        RuntimeError: Arguments are on two devices.
    """
    special: Function = _SPECIAL.get(func, _on_one_device)
    return special(func, *args, **kwargs)


def _on_one_device(func: Function, *args: Any, **kwargs: Any) -> Any:
    """A function whose arguments must be on one device, but for scalars of the CPU; its results are there too."""
    emulated = elsewhere = False
    for tensor in tensors((args, kwargs)):
        if is_emulated(tensor):
            emulated = True
        else:
            elsewhere = elsewhere or tensor.dim() > 0
    if emulated and elsewhere:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
        )
    return _across_devices(func, *args, **kwargs)


def _across_devices(func: Function, *args: Any, **kwargs: Any) -> Any:
    """A function whose arguments may be on two devices; its results are on the GPU if it is asked or given one."""
    given = list(tensors((args, kwargs)))
    to_cuda = any(map(is_emulated, given))
    device = _asked_device(func, kwargs.get("device"))
    if device is not None:
        to_cuda = is_cuda(device)
        kwargs["device"] = CPU if to_cuda else device
    generator = kwargs.get("generator")
    if generator is not None and (generator.device.type == "cuda") != to_cuda:
        wanted, found = ("cuda", "cpu") if to_cuda else ("cpu", "cuda")
        raise RuntimeError(f"Expected a '{wanted}' device type for generator but found '{found}'")
    kwargs.pop("pin_memory", None)  # memory is pinned by the driver
    results = func(*args, **kwargs)
    if to_cuda:
        place_results(results, given)
    return results


def _asked_device(func: Function, device: Any) -> Any:
    """The device that a call names, or the default one for what makes tensors; None if neither is there."""
    if device is None and func in _device_constructors():
        contexts = (mode for mode in _get_current_function_mode_stack() if isinstance(mode, DeviceContext))
        return next((context.device for context in contexts), None)
    return device


def _index(func: Function, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """Indices, and values that are assigned, may be on the CPU where the indexed tensor is not."""
    return (_across_devices if is_emulated(x) else _on_one_device)(func, x, *args, **kwargs)


def _unchanged(func: Function, *args: Any, **kwargs: Any) -> Any:
    return func(*args, **kwargs)


def _constant(for_emulated: Any) -> Function:
    """Answers a question about a tensor, if it is on the emulated device, with a constant."""
    return lambda func, x, *args, **kwargs: for_emulated if is_emulated(x) else func(x, *args, **kwargs)


def _make_device(func: Function, *args: Any, **kwargs: Any) -> torch.device:
    """`torch.device(0)` is the first GPU."""
    return torch.device("cuda", *args) if args and isinstance(args[0], int) else func(*args, **kwargs)


def _to(_func: Function, *args: Any, **kwargs: Any) -> torch.Tensor:
    return to(*args, **kwargs)


def _cuda(_func: Function, x: torch.Tensor, device: Any = None, *_args: Any, **_kwargs: Any) -> torch.Tensor:
    return to(x, DEVICE if device is None else device)


def _cpu(_func: Function, x: torch.Tensor, *_args: Any, **_kwargs: Any) -> torch.Tensor:
    return to(x, CPU)


def _from_data(func: Function, data: Any, *args: Any, device: Any = None, **kwargs: Any) -> torch.Tensor:
    """`torch.tensor` and the like: of a tensor they keep the device, of a list they ask only for the numbers."""
    kwargs.pop("pin_memory", None)
    of_tensor = isinstance(data, torch.Tensor)
    device = device if of_tensor else _asked_device(func, device)
    to_cuda = of_tensor and is_emulated(data) if device is None else is_cuda(device)
    made: torch.Tensor = func(data, *args, device=CPU, **kwargs)
    if not of_tensor:
        return place(made) if to_cuda else made
    if is_emulated(data):
        place(made)
    return to(made, DEVICE if to_cuda else CPU)


def _type_name(func: Function, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """`x.type()`; with an argument it converts."""
    if args or kwargs:
        return _on_one_device(func, x, *args, **kwargs)
    return func(x).replace("torch.", "torch.cuda.") if is_emulated(x) else func(x)


def _numpy(func: Function, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    if is_emulated(x) and not kwargs.get("force"):
        raise TypeError(_NO_NUMPY)
    return func(x, *args, **kwargs)


def _gradient(func: Function, x: torch.Tensor) -> torch.Tensor | None:
    """`x.grad`, which autograd has made in its own memory."""
    gradient: torch.Tensor | None = func(x)
    return place(gradient) if gradient is not None and is_emulated(x) else gradient


def _gradients(func: Function, outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """`torch.autograd.grad`, each of whose results is where the input is."""
    gradients: tuple[Any, ...] = func(outputs, inputs, *args, **kwargs)
    of = [inputs] if isinstance(inputs, torch.Tensor) else inputs
    for gradient, x in zip(gradients, of, strict=True):
        if gradient is not None and is_emulated(x):
            place(gradient)
    return gradients


def _register_hook(func: Function, x: torch.Tensor, hook: Function) -> Any:
    """A hook on the gradient of `x`, which autograd has made in its own memory too."""
    if not is_emulated(x):
        return func(x, hook)

    @functools.wraps(hook)
    def with_placed(gradient: torch.Tensor) -> Any:
        return hook(place(gradient))

    return func(x, with_placed)


def _deepcopy(func: Function, x: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    copy: torch.Tensor = func(x, memo)
    return place(copy) if is_emulated(x) else copy


_TENSOR = torch.Tensor
_SPECIAL: dict[Function, Function] = {
    _TENSOR.device.__get__: _constant(DEVICE),
    _TENSOR.is_cuda.__get__: _constant(True),
    _TENSOR.is_cpu.__get__: _constant(False),
    _TENSOR.get_device: _constant(0),
    torch.get_device: _constant(0),
    _TENSOR.pin_memory: lambda _func, x, *_args: x,
    _TENSOR.type: _type_name,
    _TENSOR.to: _to,
    _TENSOR.type_as: _to,
    _TENSOR.cuda: _cuda,
    _TENSOR.cpu: _cpu,
    _TENSOR.numpy: _numpy,
    _TENSOR.__array__: _numpy,
    _TENSOR.grad.__get__: _gradient,
    _TENSOR.register_hook: _register_hook,
    _TENSOR.__deepcopy__: _deepcopy,
    torch.autograd.grad: _gradients,
    torch.tensor: _from_data,
    torch.as_tensor: _from_data,
    torch.asarray: _from_data,
    torch.device: _make_device,
    torch._C._nn._parse_to: _unchanged,
    torch._has_compatible_shallow_copy_type: _unchanged,
    _TENSOR.data.__set__: _unchanged,
    _TENSOR.untyped_storage: _unchanged,
    _TENSOR.copy_: _across_devices,
    _TENSOR.__getitem__: _index,
    _TENSOR.__setitem__: _index,
    _TENSOR.index_put: _index,
    _TENSOR.index_put_: _index,
    torch.index_put: _index,
    _TENSOR.tensor_split: _index,
    torch.tensor_split: _index,
    torch.result_type: _across_devices,
    torch._VF._pack_padded_sequence: _across_devices,
}
