"""Peers of the reference operators in `tilewright bench`: TileGym and Liger-Kernel, where they are installed."""

import functools

import torch

from reference_ops.backend import register_impl


@functools.cache
def _tilegym():
    import tilegym

    tilegym.set_backend("cutile")
    return tilegym.ops


@functools.cache
def _liger():
    import liger_kernel.ops

    return liger_kernel.ops


@register_impl("gelu", "tilegym")
def tilegym_gelu(x):
    _tilegym()
    from tilegym.ops.activation import gelu

    return gelu(x)


@register_impl("gelu", "tilegym_tanh")
def tilegym_gelu_tanh(x):
    _tilegym()
    from tilegym.ops.activation import gelu

    return gelu(x, approximate="tanh")


@register_impl("silu_and_mul", "tilegym")
def tilegym_silu_and_mul(x):
    return _tilegym().silu_and_mul(x)


@register_impl("swiglu", "tilegym")
def tilegym_swiglu(gate, up):
    return _tilegym().get_swiglu()(gate, up)


@register_impl("swiglu", "liger")
def liger_swiglu(gate, up):
    return _liger().LigerSiLUMulFunction.apply(gate, up)


@register_impl("softmax", "tilegym")
def tilegym_softmax(x):
    return _tilegym().softmax(x)


@register_impl("softmax", "tilegym_tma")
def tilegym_softmax_tma(x):
    return _tilegym().softmax(x, use_tma=True)


@register_impl("softmax", "tilegym_multi_wave")
def tilegym_softmax_multi_wave(x):
    return _tilegym().softmax(x, use_multi_wave=True)


@register_impl("softmax", "liger")
def liger_softmax(x):
    return _liger().LigerSoftmaxFunction.apply(x)


@register_impl("rms_norm", "tilegym")
def tilegym_rms_norm(x, weight):
    return _tilegym().rms_norm(x, weight.shape, weight, 1e-6)


@register_impl("rms_norm", "liger")
def liger_rms_norm(x, weight):
    return _liger().LigerRMSNormFunction.apply(x, weight, 1e-6)


@register_impl("layer_norm", "tilegym")
def tilegym_layer_norm(x, weight, bias):
    return _tilegym().layer_norm(x, x.ndim - 1, x.ndim, weight, bias, 1e-5)


@register_impl("layer_norm", "tilegym_legacy")
def tilegym_layer_norm_legacy(x, weight, bias):
    return _tilegym().layer_norm_legacy(x, weight.shape, weight, bias, 1e-5)


@register_impl("layer_norm", "liger")
def liger_layer_norm(x, weight, bias):
    return _liger().LigerLayerNormFunction.apply(x, weight, bias, 1e-5)


@register_impl("matmul", "tilegym")
def tilegym_matmul(a: torch.Tensor, b: torch.Tensor):
    return _tilegym().matmul(a, b)


@register_impl("bmm", "tilegym")
def tilegym_bmm(a, b):
    return _tilegym().bmm(a, b)


@register_impl("attention", "tilegym")
def tilegym_attention(q, k, v, causal):
    return _tilegym().fmha(q, k, v, is_causal=causal)


@register_impl("add_rms_norm", "liger")
def liger_add_rms_norm(x, residual, weight):
    return _liger().LigerFusedAddRMSNormFunction.apply(x, residual, weight, 1e-6)


@register_impl("cross_entropy", "liger")
def liger_cross_entropy(logits, target):
    loss, *_ = _liger().LigerCrossEntropyFunction.apply(logits, target, None)
    return loss
