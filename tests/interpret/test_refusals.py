"""Launches that cannot be, and kernels that the compiler refuses: the error says what to do."""

import cuda.tile as ct
import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.support.launching import LAUNCHER
from tests.support.launching import add_constant
from tests.support.launching import double
from tests.support.launching import fill
from tests.support.launching import launch
from tilewright.interpret.faults import LaunchError
from tilewright.interpret.launch import Launcher
from tilewright.interpret.settings import Settings

# Launches that cannot be


def test_other_than_a_kernel_is_refused():
    with pytest.raises(TypeError, match=r"takes a kernel, a function decorated with @ct.kernel, not <built-in"):
        launch((1,), len)


def test_stream_is_required():
    with pytest.raises(TypeError, match=r"takes a stream, such as torch.cuda.current_stream\(\), not None"):
        LAUNCHER.launch(None, (1,), fill, (torch.zeros(1), 1.0))


def test_arguments_must_be_a_tuple():
    with pytest.raises(TypeError, match="arguments as a tuple, not as list"):
        LAUNCHER.launch(0, (1,), fill, [torch.zeros(1), 1])


@pytest.mark.parametrize("arguments", [(), (torch.zeros(1), 1, 2)])
def test_wrong_number_of_arguments_is_refused(arguments):
    with pytest.raises(TypeError, match=f"takes 2 arguments, the launch passes {len(arguments)}"):
        launch((1,), fill, *arguments)


@pytest.mark.parametrize("grid", [1, [1], None])
def test_grid_must_be_a_tuple(grid):
    with pytest.raises(TypeError, match="a grid is a tuple of up to three ints"):
        launch(grid, fill, torch.zeros(1), 1.0)


@pytest.mark.parametrize(
    ("grid", "complaint"),
    [
        ((0,), "axis 0 of a grid has 1 to 16777215 blocks, not 0"),
        ((-1,), "axis 0 of a grid has 1 to 16777215 blocks, not -1"),
        ((2**24,), "axis 0 of a grid has 1 to 16777215 blocks, not 16777216"),
        ((1, 2**16), "axis 1 of a grid has 1 to 65535 blocks, not 65536"),
        ((1, 1, 2**16), "axis 2 of a grid has 1 to 65535 blocks, not 65536"),
        ((1, 1, 1, 1), "a grid has at most 3 axes, not 4"),
    ],
)
def test_grid_that_a_gpu_refuses_is_refused(grid, complaint):
    with pytest.raises(LaunchError, match=complaint):
        launch(grid, fill, torch.zeros(1), 1.0)


@pytest.mark.parametrize("length", [1.5, "1", torch.tensor(1.5)])
def test_lengths_of_a_grid_are_integers(length):
    with pytest.raises(TypeError):
        launch((length,), fill, torch.zeros(1), 1.0)


def test_numpy_arrays_are_refused_as_on_a_gpu():
    with pytest.raises(TypeError, match=r"pass torch.from_numpy\(array\)"):
        launch((1,), fill, np.zeros(1, dtype=np.float32), 1.0)


def test_tensors_elsewhere_are_refused():
    with pytest.raises(LaunchError, match="on meta; the interpreter runs on strided tensors in the memory of the CPU"):
        launch((1,), fill, torch.zeros(1, device="meta"), 1.0)


def test_array_on_a_gpu_of_another_library_is_refused():
    class OnGpu:
        __cuda_array_interface__ = {"shape": (1,), "typestr": "<f4", "data": (4096, False), "version": 3}

    with pytest.raises(LaunchError, match="an array on a GPU"):
        launch((1,), fill, OnGpu(), 1.0)


@pytest.mark.parametrize("value", ["text", None, 1j, torch.float32])
def test_values_that_a_launch_cannot_pass_are_refused(value):
    with pytest.raises(TypeError, match="a launch cannot pass"):
        launch((1,), fill, torch.zeros(1), value)


@pytest.mark.parametrize("value", ["text", [1], torch.zeros(1)])
def test_constants_that_the_compiler_refuses_are_refused(value):
    with pytest.raises(TypeError, match="a constant of a kernel is a bool, int or float"):
        launch((1,), add_constant, torch.zeros(1), value)


def test_integer_that_fits_first_and_not_later_is_refused():
    x = torch.zeros(1, dtype=torch.int64)
    launch((1,), fill, x, 5)
    with pytest.raises(OverflowError, match="ScalarInt64"):
        launch((1,), fill, x, 2**31)


def test_views_of_the_other_sign_are_refused():
    view = torch.imag(torch.complex(torch.ones(4), torch.ones(4)).conj())
    with pytest.raises(LaunchError, match="resolve_neg"):
        launch((1,), double, view, torch.zeros(4))


def test_tensors_of_a_transform_are_refused():
    def host(x):
        launch((1,), double, x, x)
        return x.sum()

    with pytest.raises(LaunchError, match=r"torch\.func"):
        torch.vmap(host)(torch.ones(2, 4))
    with pytest.raises(LaunchError, match=r"torch\.func"):
        torch.func.grad(host)(torch.ones(4))


def test_tensors_without_memory_are_refused():
    with FakeTensorMode() as mode:
        x = torch.ones(4)
    with pytest.raises(LaunchError, match="FakeTensor"):
        launch((1,), double, x, x)
    with mode, pytest.raises(LaunchError, match="FakeTensor"):
        launch((1,), double, x, x)


def test_numbers_of_numpy_are_refused_with_advice():
    with pytest.raises(TypeError, match=r"float32 of NumPy.*item\(\)"):
        launch((1,), fill, torch.zeros(4), np.float32(2))


# Kernels that the compiler refuses


def test_type_errors_are_the_compilers():
    @ct.kernel
    def kernel(X):
        ct.store(X, (0,), ct.load(X, (0,), (3,)))

    with pytest.raises(ct.TileTypeError, match=r"power of two|powers of two"):
        launch((1,), kernel, torch.zeros(4))


def test_endless_recursion_is_the_compilers_error():
    @ct.kernel
    def kernel(X):
        ct.store(X, (0,), deeper(1))

    with pytest.raises(ct.TileRecursionError):
        launch((1,), kernel, torch.zeros(4))


def deeper(n):
    return deeper(n + 1)


def test_kernel_without_source_says_so():
    namespace = {"ct": ct}
    exec("def hidden(X):\n    ct.store(X, (0,), 1.0)", namespace)
    kernel = ct.kernel(namespace["hidden"])
    with pytest.raises(LaunchError, match=r"source of kernel hidden cannot be read(.|\n)*define them in a file"):
        launch((1,), kernel, torch.zeros(1))


def test_dtypes_of_the_architecture_are_checked():
    @ct.kernel
    def kernel(X):
        ct.store(X, (0,), ct.load(X, (0,), (4,)))

    x = torch.zeros(4).to(torch.float8_e4m3fn)
    Launcher(Settings(arch="sm_90")).launch(0, (1,), kernel, (x,))
    with pytest.raises(ct.TileUnsupportedFeatureError, match="not supported on sm_80"):
        Launcher(Settings(arch="sm_80")).launch(0, (1,), kernel, (x,))


def test_lambda_is_refused():
    with pytest.raises(LaunchError, match="lambda"):
        launch((1,), ct.kernel(lambda X: ct.store(X, (0,), 1.0)), torch.zeros(4))
