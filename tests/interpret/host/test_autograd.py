"""Gradients are where their tensors are, whatever makes them."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

CUDA = torch.device("cuda", 0)

pytestmark = pytest.mark.usefixtures("gpu")


class Double(torch.autograd.Function):
    """An operator that takes only tensors of a GPU, forward and backward."""

    @staticmethod
    def forward(ctx, x):
        assert x.is_cuda
        out = torch.empty_like(x).copy_(x * 2)
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, gradient):
        saved = ctx.saved_tensors
        assert {gradient.device, *(tensor.device for tensor in saved)} == {CUDA}
        assert torch.zeros(1, device="cuda").is_cuda
        return gradient * saved[1] / saved[0]


def test_gradient_of_a_function_by_hand():
    x = torch.randn(5, device="cuda", requires_grad=True)
    Double.apply(x * 3).sum().backward()
    assert x.grad.device == CUDA
    torch.testing.assert_close(x.grad, torch.full_like(x, 6.0))


def test_gradient_crosses_devices():
    x = torch.randn(5, requires_grad=True)
    y = Double.apply(x.cuda()).cpu()
    y.sum().backward()
    assert (y.device.type, x.grad.device.type) == ("cpu", "cpu")
    torch.testing.assert_close(x.grad, torch.full_like(x, 2.0))


def test_gradients_of_several_devices():
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, device="cuda", requires_grad=True)
    gradients = torch.autograd.grad((x.cuda() * y).sum(), (x, y))
    assert [gradient.device.type for gradient in gradients] == ["cpu", "cuda"]


def test_two_outputs_of_one_function():
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, (x * 3).cpu()

        @staticmethod
        def backward(ctx, first, second):
            assert (first.device.type, second.device.type) == ("cuda", "cpu")
            return first * 2 + second.cuda() * 3

    x = torch.ones(2, device="cuda", requires_grad=True)
    first, second = Both.apply(x)
    (first.sum().cpu() + second.sum()).backward()
    assert x.grad.tolist() == [5, 5]


def test_gradcheck():
    x = torch.randn(3, dtype=torch.float64, device="cuda", requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: Double.apply(x * x), (x,))
    assert torch.autograd.gradgradcheck(lambda x: (x * x * x).cpu().cuda(), (x,))


def test_hooks():
    found = []
    x = torch.ones(3, device="cuda", requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: found.append((gradient.device, torch.ones(1, device="cuda").is_cuda)))
    x.register_post_accumulate_grad_hook(lambda leaf: found.append((leaf.grad.device, leaf.is_cuda)))
    (y * 3).sum().backward()
    assert found == [(CUDA, True), (CUDA, True)]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_computes_again_on_the_device(reentrant):
    x = torch.ones(3, device="cuda", requires_grad=True)

    def function(x):
        return torch.exp(Double.apply(x) * torch.ones(3, device="cuda"))

    checkpoint(function, x, use_reentrant=reentrant).sum().backward()
    torch.testing.assert_close(x.grad, 2 * torch.exp(2 * torch.ones_like(x)))


def test_hooks_on_saved_tensors():
    x = torch.ones(3, device="cuda", requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: (x.device, x.cpu()), lambda saved: saved[1].to(saved[0])):
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.vmap(lambda row: row * x[0] + 1)(x),
        lambda x: torch.func.grad(lambda x: (x * x).sum())(x),
        lambda x: torch.func.jvp(torch.sin, (x,), (x,))[1],
        lambda x: torch.func.vmap(torch.func.grad(lambda row: (row * x[1]).sum()))(x),
    ],
)
def test_transforms_of_functions(function):
    x = torch.randn(3, 4)
    y = function(x.cuda())
    assert y.device == CUDA
    torch.testing.assert_close(y.cpu(), function(x))
