"""Tensors on the emulated device behave as on a GPU."""

import copy
import operator
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

CUDA = torch.device("cuda", 0)

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda"), CUDA, 0], ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        lambda device: torch.zeros(3, device=device),
        lambda device: torch.randn((2, 3), device=device, dtype=torch.float16),
        lambda device: torch.arange(4, device=device),
        lambda device: torch.tensor([1.0, 2.0], device=device),
        lambda device: torch.as_tensor(np.ones(3), device=device),
        lambda device: torch.ones(3).new_zeros(2, device=device),
        lambda device: torch.zeros_like(torch.ones(3), device=device),
        lambda device: torch.ones(3).to(device),
        lambda device: torch.ones(3).to(device, torch.float64, non_blocking=True),
        lambda device: torch.ones(3).to(device=device),
        lambda device: torch.ones(3).cuda(device),
        lambda device: torch.ones(3).cuda(),
        lambda device: torch.empty(0, device=device),
    ],
)
def test_what_is_made_there_is_there(make, device):
    x = make(device)
    assert (x.device, x.is_cuda, x.is_cpu, x.get_device()) == (CUDA, True, False, 0)


def test_second_device_does_not_exist():
    with pytest.raises(RuntimeError, match="invalid device ordinal 1"):
        torch.zeros(1, device="cuda:1")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: x.view(-1)[1:],
        lambda x: x.mT.contiguous(),
        lambda x: x.half(),
        lambda x: x.to(torch.float64),
        lambda x: x.to(x),
        lambda x: x.type_as(x.double()),
        lambda x: torch.empty_like(x),
        lambda x: x.new_empty(3),
        lambda x: x.as_strided((2,), (1,)),
        lambda x: torch.stack([x, x]),
        lambda x: torch.max(x, 0).indices,
        lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
        lambda x: x.add_(1),
        lambda x: torch.mul(x, 2, out=torch.empty_like(x)),
        lambda x: x.detach().clone(),
        lambda x: x + torch.tensor(2.0),
        lambda x: torch.where(x > 0, x, 0.0),
        lambda x: x[torch.tensor([0])],
        lambda x: torch.tensor(x.detach()),
        lambda x: copy.deepcopy(x),
        lambda x: torch.nn.Parameter(x),
        lambda x: x.data,
    ],
)
@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
def test_results_are_where_the_arguments_are(function):
    assert function(torch.ones((2, 3), device="cuda")).device == CUDA
    assert function(torch.ones((2, 3))).device.type == "cpu"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.cpu(),
        lambda x: x.to("cpu"),
        lambda x: x.to(torch.ones(1)),
        lambda x: x.to(device="cpu", dtype=torch.float16),
        lambda x: torch.zeros_like(x, device="cpu"),
        lambda x: torch.as_tensor(x, device="cpu"),
        lambda x: torch.tensor([x[0], 2.0]),
    ],
)
def test_results_that_leave_the_device(function):
    x = torch.ones(3, device="cuda")
    y = function(x)
    assert y.device.type == "cpu"
    y.fill_(7)
    assert x.tolist() == [1, 1, 1]


def test_transfer_to_where_it_is_copies_nothing():
    x = torch.ones(3, device="cuda")
    assert x.cuda() is x
    assert x.to("cuda") is x
    assert torch.as_tensor(x, device="cuda").data_ptr() == x.data_ptr()
    y = torch.ones(3)
    assert y.cpu() is y
    assert y.cuda().data_ptr() != y.data_ptr()


@pytest.mark.parametrize(
    "function",
    [
        operator.add,
        torch.matmul,
        lambda x, y: torch.cat([x, y]),
        lambda x, y: x.add_(y),
        lambda x, y: torch.add(x, x, out=y),
        lambda x, y: torch.nn.functional.linear(x, y),
        lambda x, y: x.index_select(0, y.long()),
        torch.equal,
    ],
)
def test_two_devices_in_one_call_are_refused(function):
    x, y = torch.zeros(3, device="cuda"), torch.zeros(3)
    for arguments in ((x, y), (y, x)):
        with pytest.raises(RuntimeError, match="same device"):
            function(*arguments)


def test_scalar_of_the_device_does_not_mix_with_the_cpu():
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(3) + torch.tensor(1.0, device="cuda")


def test_copies_and_assignments_cross_devices():
    x, y = torch.zeros(3, device="cuda"), torch.arange(3.0)
    assert x.copy_(y).tolist() == [0, 1, 2]
    x[:2] = y[1:]
    x[torch.tensor([2])] = 5.0
    assert x.tolist() == [1, 2, 5]
    assert y.copy_(x).device.type == "cpu"
    with pytest.raises(RuntimeError, match="same device"):
        y[torch.tensor([0], device="cuda")]


def test_views_share_memory():
    x = torch.zeros(6, device="cuda")
    x.view(2, 3)[1, ::2] = 3
    assert x.tolist() == [0, 0, 0, 3, 0, 3]


def test_numpy_needs_a_copy_on_the_cpu():
    x = torch.ones(3, device="cuda")
    for function in (torch.Tensor.numpy, np.asarray):
        with pytest.raises(TypeError, match=r"Tensor.cpu\(\)"):
            function(x)
    assert x.cpu().numpy().tolist() == x.tolist() == [1, 1, 1]


def test_text_names_the_device():
    x = torch.ones(2, device="cuda")
    assert repr(x) == str(x) == f"{x}" == "tensor([1., 1.], device='cuda:0')"
    assert f"{x[0]:.2f}" == "1.00"
    assert repr(torch.ones(2)) == "tensor([1., 1.])"
    assert x.half().type() == "torch.cuda.HalfTensor"


def test_close_compares_devices():
    x = torch.ones(2, device="cuda")
    torch.testing.assert_close(x, x.clone())
    assert torch.allclose(x, x.clone())
    with pytest.raises(AssertionError, match="cuda:0 != cpu"):
        torch.testing.assert_close(x, x.cpu())


def test_modules_move():
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    for moved in (module.cuda(), module.to("cuda"), module.to(device="cuda", dtype=torch.float64)):
        assert {value.device for value in moved.state_dict().values()} == {CUDA}
    module.load_state_dict(module.cpu().state_dict())
    assert {value.device.type for value in module.state_dict().values()} == {"cpu"}


def test_training_step():
    torch.manual_seed(0)
    expected, module = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    module.load_state_dict(expected.state_dict())
    module.cuda()
    x = torch.randn(5, 3)
    for model, inputs in ((expected, x), (module, x.cuda())):
        optimizer = torch.optim.AdamW(model.parameters())
        model(inputs).square().sum().backward()
        assert {parameter.grad.device for parameter in model.parameters()} == {inputs.device}
        optimizer.step()
        optimizer.zero_grad()
    torch.testing.assert_close(module.weight.cpu(), expected.weight)


def test_default_device():
    with torch.device("cuda"):
        assert torch.zeros(2).device == torch.tensor([1]).device == CUDA
    torch.set_default_device("cuda")
    try:
        assert torch.zeros(2).device == torch.tensor([1]).device == CUDA
        assert torch.zeros(2, device="cpu").device.type == "cpu"
    finally:
        torch.set_default_device(None)
    assert torch.zeros(2).device.type == "cpu"
    assert torch.device(0) == CUDA


def test_generator_of_the_device():
    generator = torch.Generator(device="cuda")
    assert generator.device == CUDA
    assert isinstance(torch.default_generator, torch.Generator)
    generator.manual_seed(3)
    x = torch.rand(4, device="cuda", generator=generator)
    generator.manual_seed(3)
    assert torch.equal(x, torch.rand(4, device="cuda", generator=generator))
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator"):
        torch.rand(4, generator=generator)
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator"):
        torch.rand(4, device="cuda", generator=torch.Generator())


def test_threads_have_the_device():
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.zeros(1, device="cuda").device))
    thread.start()
    thread.join()
    with ThreadPoolExecutor(1) as pool:
        found.append(pool.submit(lambda: torch.ones(1).cuda().device).result())
    assert found == [CUDA, CUDA]


def test_compiled_functions_run_as_they_are():
    def function(x):
        return x + 1

    assert torch.compile(function) is function
    assert torch.compile(mode="max-autotune")(function) is function
