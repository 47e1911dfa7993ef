"""`tilewright.interpret.enabled`: kernels and their host functions run on the CPU."""

import sys

import cuda.tile as ct
import pytest
import torch
from cuda.tile import launch

from tilewright.cutile import toolchain
from tilewright.errors import MissingError
from tilewright.errors import UsageError
from tilewright.interpret import enabled
from tilewright.interpret.check import CheckError
from tilewright.interpret.check import Kind


@ct.kernel
def scale(X, Y, factor, TILE: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(Y, (i,), ct.load(X, (i,), (TILE,), padding_mode=ct.PaddingMode.ZERO) * factor)


@ct.kernel
def sum_of_rows(X, Y, TILE: ct.Constant[int]):
    row = ct.load(X, (ct.bid(0), 0), (1, TILE))
    ct.store(Y, (ct.bid(0),), ct.sum(row, axis=1))


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return scaled(x, factor)

    @staticmethod
    def backward(ctx, gradient):
        return scaled(gradient, ctx.factor), None


def scaled(x, factor):
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}")
    y = torch.empty_like(x)
    with torch.cuda.device(x.device):
        launch(
            torch.cuda.current_stream(x.device), (ct.cdiv(x.numel(), 64),), scale, (x.view(-1), y.view(-1), factor, 64)
        )
    return y


def test_operator_with_its_gradient():
    with enabled():
        x = torch.randn(5, 33, device="cuda", requires_grad=True)
        y = Scale.apply(x, 3.0)
        torch.testing.assert_close(y, x * 3)
        y.backward(torch.ones_like(y))
        torch.testing.assert_close(x.grad, torch.full_like(x, 3.0))
        with pytest.raises(ValueError, match="x is on cpu"):
            scaled(x.detach().cpu(), 3.0)


def test_tensors_of_the_cpu_can_be_passed():
    x, y = torch.randn(100), torch.empty(100)
    with enabled():
        ct.launch(torch.cuda.current_stream(), (2,), scale, (x, y, 2.0, 64))
    torch.testing.assert_close(y, x * 2)


def test_real_launch_is_back():
    before = ct.launch
    with enabled():
        assert ct.launch is not before
        assert ct.launch is launch
    assert ct.launch is launch is before


def test_real_launch_is_back_after_exits_in_the_order_of_entries():
    before = ct.launch
    first, second = enabled(), enabled(check=True)
    for each in (first.__enter__, second.__enter__):
        each()
    first.__exit__(None, None, None)
    assert ct.launch is launch is not before
    second.__exit__(None, None, None)
    assert ct.launch is launch is before


def test_faults_are_raised_with_checks():
    with enabled(check=True):
        x = torch.randn(4, 100, device="cuda")
        y = torch.empty(4, device="cuda")
        with pytest.raises(CheckError) as error:
            ct.launch(torch.cuda.current_stream(), (4,), sum_of_rows, (x, y, 128))
        assert [finding.kind for finding in error.value.findings] == [Kind.PADDING]
        torch.testing.assert_close(y, x.sum(1))


def test_faults_are_reported_if_asked_for():
    found = []
    with enabled(check=True, report=found.append):
        x, y = torch.empty(100, device="cuda"), torch.empty(100, device="cuda")
        ct.launch(torch.cuda.current_stream(), (2,), scale, (x, y, 2.0, 64))
        ct.launch(torch.cuda.current_stream(), (2,), scale, (x.fill_(1), y, 2.0, 64))
    assert [error.findings[0].kind for error in found] == [Kind.UNWRITTEN]


def test_tuning():
    with enabled():
        x, y = torch.randn(100, device="cuda"), torch.empty(100, device="cuda")
        found = ct.tune.exhaustive_search(
            [48, 64],  # a tile of 48 is none
            torch.cuda.current_stream(),
            lambda tile: (ct.cdiv(100, tile),),
            scale,
            lambda tile: (x, y, 2.0, tile),
            quiet=True,
        )
        torch.testing.assert_close(y, x * 2)
    assert found.best.config == 64
    assert [config for config, *_ in found.failures] == [48]


@pytest.mark.parametrize("arch", ["sm_75", "", "sm_80,sm_90"])
def test_one_architecture_that_cutile_compiles_for(arch):
    with pytest.raises(UsageError), enabled(arch=arch):
        pass


@pytest.mark.parametrize("module", ["torch", "cuda.tile"])
def test_package_that_is_missing(module, monkeypatch):
    installed = toolchain.is_installed
    monkeypatch.setattr(toolchain, "is_installed", lambda name: name != module and installed(name))
    with pytest.raises(MissingError, match=f"{module} is not installed\npip install "), enabled():
        pass


def test_triton_need_not_be_installed(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "triton", None)
    with enabled():
        assert torch.zeros(1, device="cuda").is_cuda


class Double(torch.autograd.Function):
    """As torch.func asks for it."""

    @staticmethod
    def forward(x):
        y = torch.empty_like(x)
        launch(torch.cuda.current_stream(), (x.numel(),), scale, (x.view(-1), y.view(-1), 2.0, 1))
        return y

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient

    @staticmethod
    def vmap(info, in_dims, x):
        return Double.apply(x.movedim(in_dims[0], 0).contiguous()), 0


def test_launches_inside_of_transforms_of_functions():
    with enabled():
        x = torch.arange(8.0, device="cuda").view(2, 4)
        assert torch.equal(torch.vmap(Double.apply)(x), 2 * x)
        assert torch.equal(torch.func.grad(lambda x: Double.apply(x).square().sum())(x), 8 * x)


@ct.kernel
def through_float8(X):
    tile = ct.load(X, (0,), (16,))
    ct.store(X, (0,), tile.astype(ct.float8_e4m3fn).astype(ct.float32))


def test_launches_are_of_the_architecture():
    with enabled(arch="sm_90"):
        ct.launch(torch.cuda.current_stream(), (1,), through_float8, (torch.ones(16, device="cuda"),))
    with enabled(arch="sm_80"):
        x = torch.ones(16, device="cuda")
        with pytest.raises(ct.TileError, match="sm_80"):
            ct.launch(torch.cuda.current_stream(), (1,), through_float8, (x,))
