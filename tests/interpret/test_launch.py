"""Launches of real kernels: what they take, refuse and report."""

import functools
import re
import threading

import cuda.tile as ct
import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from tilewright.interpret.faults import KernelAssertionError
from tilewright.interpret.faults import LaunchError
from tilewright.interpret.faults import StepLimitExceeded
from tilewright.interpret.launch import Launcher
from tilewright.interpret.settings import Settings

LAUNCHER = Launcher()
HERE = re.escape(__file__)


def launch(grid, kernel, *arguments):
    LAUNCHER.launch(0, grid, kernel, arguments)


@ct.kernel
def double(X, Y):
    i = ct.bid(0)
    ct.store(Y, (i,), ct.load(X, (i,), (4,)) * 2)


@ct.kernel
def fill(X, value):
    ct.store(X, (ct.bid(0),), value)


@ct.kernel
def add_constant(X, n: ct.Constant):
    ct.store(X, (ct.bid(0),), ct.load(X, (ct.bid(0),), (1,)) + n)


def test_kernel_writes_to_the_tensors_that_it_gets():
    x = torch.arange(10.0)
    y = torch.zeros(10)
    launch((3,), double, x, y)
    torch.testing.assert_close(y, x * 2)


def test_views_and_aliases_share_their_memory():
    base = torch.arange(16.0)
    launch((2,), double, base[:8], base[8:])
    torch.testing.assert_close(base, torch.cat([torch.arange(8.0), 2 * torch.arange(8.0)]))


def test_tensor_that_requires_a_gradient_is_read_and_written():
    x = torch.arange(4.0, requires_grad=True)
    y = torch.zeros(4, requires_grad=True)
    launch((1,), double, x, y)
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert y.grad_fn is None


class Exchanged:
    """An array of another library, of which only the exchange protocol is known."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **options):
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


def test_arrays_of_other_libraries_are_taken_by_their_exchange_protocol():
    y = torch.zeros(4)
    launch((1,), double, Exchanged(torch.arange(4.0)), Exchanged(y))
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0]


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [(True, torch.bool, True), (7, torch.int64, 7), (-7, torch.int32, -7), (0.1, torch.float32, np.float32(0.1))],
)
def test_scalars_arrive(value, dtype, expected):
    x = torch.zeros(2, dtype=dtype)
    launch((2,), fill, x, value)
    assert x.tolist() == [expected, expected]


def test_constants_of_equal_value_and_other_type_are_other_kernels():
    for constant, expected in ((1, torch.int32), (1.0, torch.float32), (True, torch.int32)):
        x = torch.zeros(1, dtype=expected)
        launch((1,), add_constant, x, constant)
        assert x.tolist() == [1]


def test_lists_of_arrays_are_indexed_by_their_position():
    @ct.kernel
    def kernel(arrays, Y, n: ct.Constant[int]):
        for i in range(n):
            ct.store(Y, (i, 0), ct.load(arrays[i], (0,), (4,)).reshape((1, 4)))

    arrays = [torch.arange(4.0) + 10 * i for i in range(3)]
    y = torch.zeros(3, 4)
    launch((1,), kernel, arrays, y, 3)
    torch.testing.assert_close(y, torch.stack(arrays))


def test_tuples_are_taken_item_by_item():
    @ct.kernel
    def kernel(pair: tuple[ct.Array, int], Y):
        array, factor = pair
        ct.store(Y, (0,), ct.load(array, (0,), (4,)) * factor)

    y = torch.zeros(4)
    launch((1,), kernel, (torch.arange(4.0), 3), y)
    assert y.tolist() == [0.0, 3.0, 6.0, 9.0]


def test_wide_scalars_keep_64_bits():
    @ct.kernel
    def kernel(X, n: ct.ScalarInt64):
        ct.store(X, (0,), n + 1)

    x = torch.zeros(1, dtype=torch.int64)
    for n in (2**40, 5, 2**40 + 1):
        launch((1,), kernel, x, n)
        assert x.item() == n + 1


def test_closures_and_static_evaluation_are_the_compilers():
    scale = 3

    @ct.kernel
    def kernel(X, n: ct.Constant[int]):
        total = 0
        for i in ct.static_iter(range(n)):
            total += ct.static_eval(i * scale)
        ct.store(X, (0,), total)

    x = torch.zeros(1, dtype=torch.int32)
    launch((1,), kernel, x, 5)
    assert x.item() == sum(i * scale for i in range(5))


def test_kernel_with_other_hints_computes_the_same():
    y = torch.zeros(4)
    launch((1,), double.replace_hints(occupancy=ct.ByTarget(sm_90=2, default=4)), torch.ones(4), y)
    assert y.tolist() == [2.0] * 4


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


def test_grid_without_axes_is_one_block():
    x = torch.zeros(2)
    launch((), fill, x, 1.0)
    assert x.tolist() == [1.0, 0.0]


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


# Kernels that fail


@ct.kernel
def checked(X, limit: int):
    i = ct.bid(0)
    ct.assert_(ct.load(X, (i,), (2,)) < limit, "too large")  # noqa: PT009
    ct.store(X, (i,), ct.load(X, (i,), (2,)) + 100)


def test_assertion_names_the_kernel_its_line_and_the_first_block():
    x = torch.arange(12, dtype=torch.int32)
    with pytest.raises(KernelAssertionError, match="too large") as caught:
        launch((6,), checked, x, 7)
    [note] = caught.value.__notes__
    line = checked._annotated_function.pyfunc.__code__.co_firstlineno + 3
    assert re.fullmatch(rf"kernel checked, block \(3, 0, 0\) at {HERE}:{line}, in checked", note)
    assert x.tolist() == [100, 101, 102, 103, 104, 105, 6, 7, 8, 9, 10, 11]


def test_fault_in_a_helper_names_its_line():
    @ct.kernel
    def kernel(X):
        helper(ct.bid(0))

    def helper(i):
        ct.assert_(i < 2)  # noqa: PT009

    with pytest.raises(KernelAssertionError) as caught:
        launch((4,), kernel, torch.zeros(1))
    assert caught.value.__notes__[0].endswith(f":{helper.__code__.co_firstlineno + 1}, in helper")
    assert "block (2, 0, 0)" in caught.value.__notes__[0]


def test_loop_without_end_is_stopped_at_its_line():
    @ct.kernel
    def kernel(X):
        n = 1
        while n > 0:
            n = 3 - n
        ct.store(X, (0,), n)

    launcher = Launcher(Settings(step_limit=1000))
    with pytest.raises(StepLimitExceeded, match="within 1000 iterations") as caught:
        launcher.launch(0, (3,), kernel, (torch.zeros(1, dtype=torch.int32),))
    line = kernel._annotated_function.pyfunc.__code__.co_firstlineno + 3
    assert f"{__file__}:{line}" in caught.value.__notes__[0]


def test_step_of_a_range_must_be_positive():
    @ct.kernel
    def kernel(X, step: int):
        for i in range(0, 4, step):
            ct.store(X, (i,), 1.0)

    with pytest.raises(LaunchError, match="the step of a range is -1; it must be positive"):
        launch((1,), kernel, torch.zeros(4), -1)


# Printing


def test_blocks_print_in_their_order():
    @ct.kernel
    def kernel(X):
        i = ct.bid(0)
        ct.printf("block %d of %02d\n", i, ct.num_blocks(0))
        print(f"x={ct.load(X, (i,), (2,))}", i > 0)

    printed = []
    Launcher(output=printed.append).launch(0, (2,), kernel, (torch.tensor([0.5, 1.0, 1.5, 2.0]),))
    assert "".join(printed) == ("block 0 of 02\nx=[0.500000, 1.000000] 0\nblock 1 of 02\nx=[1.500000, 2.000000] 1\n")


def test_kernels_print_to_standard_output(capsys):
    @ct.kernel
    def kernel(X):
        ct.printf("hello %d\n", ct.bid(0))

    launch((2,), kernel, torch.zeros(1))
    assert capsys.readouterr().out == "hello 0\nhello 1\n"


# Many launches


def test_threads_launch_at_the_same_time():
    @ct.kernel
    def kernel(X, n: ct.Constant[int]):
        total = ct.zeros((16,), ct.float32)
        for i in range(n):
            total = total + ct.load(X, (i,), (16,))
        ct.store(X, (ct.bid(0),), total)

    launcher = Launcher()
    results = {}

    def work(n):
        x = torch.arange(16.0 * 8)
        for _ in range(10):
            y = x.clone()
            launcher.launch(0, (1,), kernel, (y, n))
        results[n] = y[:16]

    threads = [threading.Thread(target=work, args=(n,)) for n in (2, 3, 5, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in (2, 3, 5, 8):
        torch.testing.assert_close(results[n], torch.arange(16.0 * 8).reshape(8, 16)[:n].sum(0))


def test_modes_and_subclasses_of_the_host_do_not_reach_the_kernel():
    class Refuses(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            raise AssertionError(f"{function} was called")

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            raise AssertionError(f"{function} was called")

    with torch._C.DisableTorchFunction():
        y = torch.zeros(4)
        x = torch.ones(4).as_subclass(Refuses)
    with Mode():
        launch((1,), double, x, y)
    assert y.tolist() == [2.0] * 4


def test_autocast_of_the_host_does_not_reach_the_kernel():
    @ct.kernel
    def kernel(X, Y):
        x = ct.load(X, (0, 0), (16, 16))
        ct.store(Y, (0, 0), ct.mma(x, x, ct.zeros((16, 16), ct.float32)))

    x = torch.rand(16, 16).half()
    y = torch.zeros(16, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        launch((1,), kernel, x, y)
    torch.testing.assert_close(y, x.float() @ x.float())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_default_dtype_of_the_host_does_not_reach_the_kernel(dtype):
    y = torch.zeros(4)
    x = torch.full((4,), 1 / 3)
    torch.set_default_dtype(dtype)
    try:
        launch((1,), double, x, y)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(y, x * 2)


def test_partial_application_of_the_launcher_is_what_a_host_installs():
    y = torch.zeros(4)
    functools.partial(LAUNCHER.launch, 0)((1,), double, (torch.ones(4), y), programmatic_dependent_launch=True)
    assert y.tolist() == [2.0] * 4


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


def test_modes_of_the_host_do_not_see_the_operations_of_a_kernel():
    x, y = torch.arange(4.0), torch.zeros(4)
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Watch():
        launch((1,), double, x, y)
        assert seen == []
        x + y
    assert seen == [torch.ops.aten.add.Tensor]
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_numbers_of_numpy_are_refused_with_advice():
    with pytest.raises(TypeError, match=r"float32 of NumPy.*item\(\)"):
        launch((1,), fill, torch.zeros(4), np.float32(2))


def test_lambda_is_refused():
    with pytest.raises(LaunchError, match="lambda"):
        launch((1,), ct.kernel(lambda X: ct.store(X, (0,), 1.0)), torch.zeros(4))
