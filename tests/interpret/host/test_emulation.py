"""The device is there for a while, and leaves nothing behind."""

import itertools
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import cuda.tile as ct
import pytest
import torch
from cuda.tile import launch
from torch.overrides import _get_current_function_mode_stack

from tilewright.cutile.targets import select
from tilewright.interpret.host.device_mode import is_active
from tilewright.interpret.host.emulation import emulated_device
from tilewright.interpret.host.substitution import Substitution

SM_80, SM_90 = select("sm_80,sm_90")
WATCHED = (
    *(torch, torch.cuda, torch.autograd, torch.autograd.graph, torch.autograd.Function, torch.Tensor),
    *(torch.autograd.function.BackwardCFunction, torch.autograd.graph.saved_tensors_hooks),
    *(torch._C, threading.Thread, ct, ct.tune, torch.serialization, torch.accelerator, torch.cuda.nvtx),
)


def snapshot() -> list[dict]:
    return [
        *(dict(vars(owner)) for owner in WATCHED),
        {"packages": list(torch.serialization._package_registry), "launch": launch},
        {"modes": list(_get_current_function_mode_stack())},
    ]


def test_everything_is_restored():
    before = snapshot()
    with emulated_device(SM_90, lambda *_: None), emulated_device(SM_80, lambda *_: None):
        assert snapshot() != before
    assert snapshot() == before


def test_everything_is_restored_after_an_error():
    before = snapshot()
    with pytest.raises(KeyError), emulated_device(SM_90, lambda *_: None):
        raise KeyError
    assert snapshot() == before


@pytest.mark.parametrize("observers", [(None, None), (None, print), (print, None)])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_everything_is_restored_whatever_the_order_of_exits(order, observers):
    before = snapshot()
    devices = [emulated_device(SM_90, lambda *_: None, observe=each) for each in (*observers, None)]
    for device in devices:
        device.__enter__()
    for place in order[:2]:
        devices[place].__exit__(None, None, None)
        assert torch.zeros(1, device="cuda").is_cuda
    devices[order[2]].__exit__(None, None, None)
    assert snapshot() == before


def test_device_that_is_left_early_is_there_until_those_inside_of_it_are_left():
    outer, inner = emulated_device(SM_90, lambda *_: None), emulated_device(SM_80, lambda *_: None)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert torch.cuda.get_device_capability() == (8, 0)
    with emulated_device(SM_90, lambda *_: None):
        assert torch.cuda.get_device_capability() == (9, 0)
    inner.__exit__(None, None, None)
    assert not torch.cuda.is_available()


def test_everything_is_restored_after_an_exit_in_another_thread():
    before = snapshot()
    with ThreadPoolExecutor(1) as pool:
        device = emulated_device(SM_90, lambda *_: None)
        pool.submit(device.__enter__).result()
        device.__exit__(None, None, None)
        assert snapshot() == before
        assert pool.submit(lambda: torch.zeros(1).device.type).result() == "cpu"
        assert not pool.submit(is_active).result()
        with pytest.raises((AssertionError, RuntimeError), match="CUDA"):  # what PyTorch says where it has none
            pool.submit(torch.zeros, 1, device="cuda").result()
        # The next one is as good as the first, there and here.
        for submit in (lambda function: pool.submit(function).result(), lambda function: function()):
            device = emulated_device(SM_90, lambda *_: None)
            submit(device.__enter__)
            assert submit(lambda: torch.zeros(1, device="cuda").is_cuda)
            submit(lambda: device.__exit__(None, None, None))  # noqa: B023
    assert snapshot() == before


def test_tensors_that_are_left_are_of_the_cpu():
    with emulated_device(SM_90, lambda *_: None):
        x = torch.ones(3, device="cuda", requires_grad=True)
        y = (x * 2).sum()
    y.backward()
    assert (x.device.type, x.is_cuda, x.grad.tolist()) == ("cpu", False, [2, 2, 2])
    assert (x + torch.ones(3)).tolist() == [2, 2, 2]


def test_launch_is_replaced_under_every_name(gpu, launches):
    ct.launch("stream", (1,), "kernel", ())
    launch("stream", (2,), "kernel", ())
    assert [grid for _, grid, *_ in launches] == [(1,), (2,)]


def test_launch_of_a_module_that_is_imported_meanwhile_is_restored():
    module = types.ModuleType("imported_meanwhile")
    with emulated_device(SM_90, lambda *_: None):
        exec("from cuda.tile import launch\nfrom torch.cuda import current_stream", vars(module))
        sys.modules[module.__name__] = module
    try:
        assert module.launch is ct.launch is launch
        assert module.current_stream is torch.cuda.current_stream
    finally:
        del sys.modules[module.__name__]


def test_inner_device_counts():
    with emulated_device(SM_90, lambda *_: None):
        x = torch.ones(2, device="cuda")
        with emulated_device(SM_80, lambda *_: None):
            assert torch.cuda.get_device_capability() == (8, 0)
            assert (x + torch.ones(2, device="cuda")).is_cuda
        assert torch.cuda.get_device_capability() == (9, 0)
        assert x.is_cuda


def test_two_threads_do_not_emulate_at_once(gpu):
    def enter():
        with emulated_device(SM_90, lambda *_: None):
            pass

    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="another thread emulates"):
        pool.submit(enter).result()
    assert torch.zeros(1, device="cuda").is_cuda


def test_launches_take_tensors_of_one_device(gpu, launches):
    on_gpu, on_cpu = torch.ones(2, device="cuda"), torch.ones(2)
    for argument in ((on_gpu, [on_cpu]), (on_cpu, (on_gpu, 1))):
        with pytest.raises(RuntimeError, match="tensors on cuda:0 and on the CPU"):
            ct.launch(0, (1,), None, argument)
    assert launches == []
    ct.launch(0, (1,), None, (on_gpu, on_gpu))
    ct.launch(0, (1,), None, (on_cpu, 2.0))
    assert len(launches) == 2


def test_what_a_class_inherits_is_inherited_again():
    class Base:
        def name(self):
            return "base"

    class Derived(Base):
        pass

    with Substitution([(Derived, "name", lambda _self: "replaced")]):
        assert Derived().name() == "replaced"
        assert Base().name() == "base"
    assert Derived().name() == "base"
    assert "name" not in vars(Derived)
