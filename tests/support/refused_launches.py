"""Launch what cuda-tile refuses, and print the messages as JSON; needs some libcuda.so.1 to be found."""

import ctypes
import json

import cuda.tile as ct
import torch
from cuda.tile.compilation import CallingConvention
from cuda.tile.compilation import KernelSignature

X = torch.empty(64, device="meta")


class OnGpu:
    """A tensor that says of its memory that it is on a GPU."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **_):
        capsule = torch.utils.dlpack.to_dlpack(self._tensor)
        address = ctypes.pythonapi.PyCapsule_GetPointer
        address.restype, address.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        # A DLTensor begins with the address of its memory, which the kind of device follows: 2 is CUDA.
        ctypes.c_int.from_address(address(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)).value = 2
        return capsule


def signature(*arguments):
    """What a launch infers before it asks for the GPU of an array."""
    return KernelSignature.from_kernel_args(copy, arguments, CallingConvention.cutile_python_v2())


@ct.kernel
def copy(X, Y, TILE: ct.Constant[int]):
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)))


LAUNCHES = {
    "kernel-called": [lambda: copy(X, X, 64)],
    "grid-form": [lambda grid=grid: ct.launch(0, grid, copy, (X, X, 64)) for grid in (1, [1], (1,) * 4, (1.0,))],
    "grid-empty": [lambda: ct.launch(0, (-1,), copy, (X, X, 64))],
    "grid-too-large": [lambda: ct.launch(0, (2**24,), copy, (X, X, 64))],
    "number-of-arguments": [lambda: ct.launch(0, (1,), copy, (X, X)), lambda: ct.launch(0, (1,), copy, [X, X, 64])],
    "argument-type": [
        lambda: ct.launch(0, (1,), copy, (None, X, 64)),
        lambda: ct.launch(0, (1,), copy, (X, X, "64")),
        lambda: signature(OnGpu(torch.empty(64, dtype=torch.complex64)), X, 64),
        lambda: signature(OnGpu(torch.empty(64, dtype=torch.float4_e2m1fn_x2)), X, 64),
    ],
    "tensor-not-on-gpu": [lambda: ct.launch(0, (1,), copy, (torch.empty(64), X, 64))],
    "number-too-large": [
        lambda: ct.launch(0, (1,), copy, (torch.empty(2**31, device="meta"), X, 64)),
        lambda: ct.launch(0, (1,), copy, (X, 2**40, 64)),
    ],
}


def refusal(launch) -> str:
    """What a launch is refused with."""
    try:
        launch()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("the launch was accepted")


if __name__ == "__main__":
    print(json.dumps({name: [refusal(launch) for launch in launches] for name, launches in LAUNCHES.items()}))
