"""Launches of real kernels: what they take, refuse and report."""

import functools
import gc
import re
import threading
from typing import Annotated

import cuda.tile as ct
import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.launching import LAUNCHER
from tests.support.launching import add_constant
from tests.support.launching import double
from tests.support.launching import fill
from tests.support.launching import launch
from tilewright.interpret import launch as launching
from tilewright.interpret.faults import KernelAssertionError
from tilewright.interpret.faults import LaunchError
from tilewright.interpret.faults import StepLimitExceeded
from tilewright.interpret.launch import Launcher
from tilewright.interpret.settings import Settings

HERE = re.escape(__file__)


def test_kernel_writes_to_the_tensors_that_it_gets():
    x = torch.arange(10.0)
    y = torch.zeros(10)
    launch((3,), double, x, y)
    torch.testing.assert_close(y, x * 2)


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_searched_for_after_a_kernel_is_compiled_as_before(monkeypatch, enabled):
    seen = []
    compiled = launching.typed_kernel
    monkeypatch.setattr(launching, "typed_kernel", lambda *all_: seen.append(gc.isenabled()) or compiled(*all_))
    if not enabled:
        gc.disable()
    try:
        Launcher().launch(0, (3,), double, (torch.arange(10.0), torch.zeros(10)))
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
    assert seen == [False]


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


def test_grid_without_axes_is_one_block():
    x = torch.zeros(2)
    launch((), fill, x, 1.0)
    assert x.tolist() == [1.0, 0.0]


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


@pytest.mark.parametrize("step", [0, -1])
def test_step_of_a_range_must_be_positive(step):
    @ct.kernel
    def kernel(X, step: int):
        for i in range(0, 4, step):
            ct.store(X, (i,), 1.0)

    with pytest.raises(LaunchError, match=f"the step of a range is {step}; it must be positive"):
        launch((1,), kernel, torch.zeros(4), step)


# Many launches


@ct.kernel
def tell_bools(X, n: ct.Constant):
    ct.store(X, (0,), ct.static_eval(7 if n is True else n))


def test_constants_that_are_equal_in_python_are_different_ones():
    x = torch.zeros(1)
    for constant, expected in ((1, 1), (True, 7), (1, 1), (0.5, 0.5)):
        launch((1,), tell_bools, x, constant)
        assert x.item() == expected


@pytest.mark.skipif(
    "static_stride_dims" not in ct.ArrayAnnotation.__dataclass_fields__, reason="cuda-tile 1.5 has no static strides"
)
def test_arrays_of_one_shape_may_have_any_static_strides():
    strided = ct.ArrayAnnotation(static_stride_dims=(0,))

    @ct.kernel
    def kernel(X: Annotated[ct.Array, strided], Y):
        ct.store(Y, (0,), ct.load(X, (0,), (8,)))

    x = torch.arange(16.0)
    for view in (x[:8], x[::2], x[:8]):
        y = torch.zeros(8)
        launch((1,), kernel, view, y)
        assert torch.equal(y, view)


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
