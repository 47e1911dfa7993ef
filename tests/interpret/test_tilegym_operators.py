"""Operators of TileGym, which nobody here wrote, run unchanged on the CPU and agree with PyTorch."""

import pytest
import torch
import torch.nn.functional as F

from tilewright.interpret import enabled


@pytest.fixture(scope="module")
def ops():
    with enabled(arch="sm_90"):
        tilegym = pytest.importorskip("tilegym")
        before = tilegym.get_current_backend()
        tilegym.set_backend("cutile")
        torch.manual_seed(0)
        yield tilegym.ops
        tilegym.set_backend(before)


def randn(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype, device="cuda")


@pytest.mark.parametrize("options", [{}, {"use_tma": True}, {"use_multi_wave": True}], ids=["plain", "tma", "waves"])
def test_softmax(ops, options):
    x = randn(8, 100)
    torch.testing.assert_close(ops.softmax(x, **options), F.softmax(x, -1), rtol=1e-5, atol=1e-6)


def test_silu_and_mul(ops):
    x = randn(8, 2 * 96)
    torch.testing.assert_close(ops.silu_and_mul(x), F.silu(x[:, :96]) * x[:, 96:], rtol=1e-5, atol=1e-6)


def test_gradient_of_silu_and_mul(ops):
    x = randn(8, 2 * 96)
    found, expected = x.clone().requires_grad_(), x.clone().requires_grad_()
    ops.silu_and_mul(found).sum().backward()
    (F.silu(expected[:, :96]) * expected[:, 96:]).sum().backward()
    torch.testing.assert_close(found.grad, expected.grad, rtol=1e-4, atol=1e-5)


def test_swiglu(ops):
    gate, up = randn(8, 100), randn(8, 100)
    torch.testing.assert_close(ops.get_swiglu()(gate, up), F.silu(gate) * up, rtol=1e-5, atol=1e-6)


def test_rms_norm(ops):
    x, weight = randn(8, 100), randn(100)
    torch.testing.assert_close(
        ops.rms_norm(x, (100,), weight, 1e-6), F.rms_norm(x, (100,), weight, 1e-6), rtol=1e-5, atol=1e-5
    )


def test_layer_norm(ops):
    x, weight, bias = randn(8, 100), randn(100), randn(100)
    expected = F.layer_norm(x, (100,), weight, bias, 1e-5)
    torch.testing.assert_close(ops.layer_norm(x, 1, 2, weight, bias, 1e-5), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ops.layer_norm_legacy(x, (100,), weight, bias, 1e-5), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_of_matrices(ops, dtype):
    a, b = randn(3, 60, 90, dtype=dtype), randn(3, 90, 70, dtype=dtype)
    torch.testing.assert_close(ops.matmul(a[0], b[0]), a[0] @ b[0])
    torch.testing.assert_close(ops.bmm(a, b), a @ b)


@pytest.mark.parametrize("is_causal", [True, False], ids=["causal", "full"])
def test_attention(ops, is_causal):
    q, k, v = (randn(1, 2, 64, 64, dtype=torch.float16) for _ in range(3))
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    torch.testing.assert_close(ops.fmha(q, k, v, is_causal=is_causal), expected, rtol=2e-2, atol=2e-3)


def test_transpose(ops):
    x = randn(70, 50)
    assert torch.equal(ops.transpose(x), x.t())


def test_relu(ops):
    x = randn(1000)
    assert torch.equal(ops.activation.relu(x), F.relu(x))
