"""Tests of add_rms_norm against PyTorch."""

import pytest
import torch

from reference_ops import add_rms_norm
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


def _joined(fn):
    """The function with its results in one tensor, so that they and their gradients are compared together."""
    return lambda **kwargs: torch.stack(fn(**kwargs))


class Test_AddRmsNorm(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(64, 4096), (4, 8, 1024), (3, 32768)]
    _ragged = [(5, 7, 1337), (3, 20011), (6, 1), (1,)]
    _empty = [(0,), (3, 0), (0, 5)]
    _huge = (2**19 + 1, 4096)
    _arguments = [{"eps": 0.1}, {"weight": None}, {"bias": None}, {"weight": None, "bias": None}]
    _tolerances = {torch.float32: {"rtol": 1e-5, "atol": 1e-5}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        return {
            "x": torch.randn(shape, dtype=dtype, device=device),
            "residual": torch.randn(shape, dtype=dtype, device=device),
            "weight": torch.randn(shape[-1:], dtype=dtype, device=device),
            "bias": torch.randn(shape[-1:], dtype=dtype, device=device),
        }

    @staticmethod
    def reference(
        x: torch.Tensor,
        residual: torch.Tensor,
        weight: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
        eps: float = 1e-6,
        out: tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sum and its RMS normalization in fp32 (fp64 for fp64), rounded once."""
        x = x + residual
        y = x.to(torch.promote_types(x.dtype, torch.float32))
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)
        if weight is not None:
            y = y * weight.to(y.dtype)
        if bias is not None:
            y = y + bias.to(y.dtype)
        return y.to(x.dtype), x

    def _setup(self, backend):
        if not is_backend_available(backend):
            pytest.skip(f"backend {backend} is not available")
        set_backend(backend)
        self.setUp()

    def _check(self, kwargs, **options):
        dtype = next(iter(kwargs.values())).dtype
        tolerances = self._tolerances.get(dtype, {})
        if dtype in (torch.float16, torch.bfloat16) and not tolerances:
            # Relative to the largest value, so that zeros never pass for a result that is small throughout
            values = torch.stack(self.reference(**kwargs)).detach().float().nan_to_num(0.0, 0.0, 0.0)
            peak = values.abs().max().item() if values.numel() else 1.0
            tolerances = {"rtol": 1e-2, "atol": 2e-2 * min(1.0, peak)}
        self.assertCorrectness(_joined(add_rms_norm), _joined(self.reference), kwargs, **tolerances, **options)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", _aligned + _ragged + _empty, ids=str)
    def test_op(self, shape, dtype, backend):
        self._setup(backend)
        self._check(self.inputs(shape, dtype))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("layout", ["strided", "transposed"])
    @pytest.mark.parametrize("shape", [_aligned[0], _ragged[0]], ids=str)
    def test_op_not_contiguous(self, shape, layout, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[0])
        for name, x in kwargs.items():
            if not isinstance(x, torch.Tensor) or x.ndim == 0:
                continue
            if layout == "transposed":
                kwargs[name] = x.mT.contiguous().mT if x.ndim > 1 else x
            else:
                kwargs[name] = torch.stack([x, torch.zeros_like(x)], dim=-1)[..., 0]
        self._check(kwargs, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("arguments", _arguments, ids=str)
    def test_op_arguments(self, arguments, backend):
        self._setup(backend)
        kwargs = {**self.inputs(self._ragged[0], self._dtypes[0]), **arguments}
        for x in kwargs.values():
            if isinstance(x, torch.Tensor):
                x.requires_grad_()
        self._check(kwargs, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    def test_op_large_magnitude(self, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], dtype)
        name = next(iter(kwargs))
        kwargs[name] = kwargs[name] * 100
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")], ids=str)
    def test_op_special_values(self, value, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        next(iter(kwargs.values())).view(-1)[::97] = value
        self._check(kwargs, equal_nan=True)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        expected = add_rms_norm(**kwargs)
        memory = [x.new_full((x.numel() + 32,), 7) for x in expected]  # with more on either side
        out = tuple(x[16:-16].view(result.shape) for x, result in zip(memory, expected, strict=True))
        assert add_rms_norm(**kwargs, out=out) is out
        assert torch.equal(torch.stack(out), torch.stack(expected))
        assert all(torch.cat((x[:16], x[-16:])).eq(7).all() for x in memory)
        for wrong in (out[1:], (*out[1:], out[0].new_empty((*out[0].shape, 2)))):
            with pytest.raises(ValueError, match="out"):
                add_rms_norm(**kwargs, out=wrong)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            add_rms_norm(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            add_rms_norm(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            add_rms_norm(**kwargs, unknown=1)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", _aligned + _ragged + _empty, ids=str)
    def test_op_backward(self, shape, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, dtype)
        for x in kwargs.values():
            if isinstance(x, torch.Tensor):
                x.requires_grad_()
        self._check(kwargs)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(9, 3000), (3, 20011), (70001, 50)], ids=str)
    def test_op_mean_far_from_zero(self, shape, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[0])
        kwargs["x"] += 8
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_rows_of_a_view(self, backend):
        self._setup(backend)
        kwargs = self.inputs((7, 5, 130), self._dtypes[0])
        for name in ("x", "residual"):
            kwargs[name] = kwargs[name].permute(1, 0, 2)[:, 1:]
        self._check(kwargs, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_in_place_and_strided(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 5, 34), self._dtypes[0])
        expected = add_rms_norm(**kwargs)
        strided = tuple(x.new_empty(x.mT.shape).mT for x in expected)
        pair = kwargs["x"], kwargs["residual"]
        add_rms_norm(**kwargs, out=strided)
        add_rms_norm(**kwargs, out=pair)
        assert torch.equal(torch.stack(strided), torch.stack(expected))
        assert torch.equal(torch.stack(pair), torch.stack(expected))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_one_result_used(self, backend):
        self._setup(backend)
        for position in range(2):
            kwargs = {name: x.requires_grad_() for name, x in self.inputs((6, 34), self._dtypes[0]).items()}
            expected = {name: x.detach().clone().requires_grad_() for name, x in kwargs.items()}
            add_rms_norm(**kwargs)[position].square().sum().backward()
            self.reference(**expected)[position].square().sum().backward()
            for name in ("x", "residual"):
                torch.testing.assert_close(kwargs[name].grad, expected[name].grad, rtol=1e-2, atol=1e-5)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_bad_residual(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        with pytest.raises(ValueError, match="residual"):
            add_rms_norm(**{**kwargs, "residual": kwargs["residual"][1:]})
        with pytest.raises(TypeError, match="residual"):
            add_rms_norm(**{**kwargs, "residual": kwargs["residual"].to(torch.complex64)})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("name", ["weight", "bias"])
    def test_op_bad_vector(self, name, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        with pytest.raises(ValueError, match=name):
            add_rms_norm(**{**kwargs, name: kwargs[name][:-1]})
        kwargs[name] = kwargs[name].to(torch.int32)
        with pytest.raises(TypeError, match=name):
            add_rms_norm(**kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_with_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        kwargs["weight"].requires_grad_()
        with pytest.raises(ValueError, match="out"):
            add_rms_norm(**kwargs, out=(torch.empty_like(kwargs["x"]),) * 2)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("missing", [("weight",), ("bias",), ("weight", "bias")], ids="-".join)
    def test_op_backward_without(self, missing, backend):
        self._setup(backend)
        kwargs = self.inputs((9, 3000), self._dtypes[0])
        kwargs.update(dict.fromkeys(missing))
        for x in kwargs.values():
            if x is not None:
                x.requires_grad_()
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("n", [11008, 16383, 16384], ids=str)
    def test_op_backward_of_long_rows(self, n, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs((9, n), dtype)
        for x in kwargs.values():
            x.requires_grad_()
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_backward_of_several_tiles_for_each_block(self, backend):
        self._setup(backend)
        kwargs = self.inputs((70001, 50), self._dtypes[0])
        inputs = [x.requires_grad_() for x in kwargs.values()]
        gradient = torch.rand((70001, 50), device="cuda").to(self._dtypes[0])
        out = add_rms_norm(**kwargs)[0]
        result = torch.autograd.grad(out, inputs, gradient)
        expected = torch.autograd.grad(self.reference(**kwargs)[0], inputs, gradient)
        for actual, ref in zip(result, expected, strict=True):
            torch.testing.assert_close(actual, ref, rtol=1e-2, atol=1e-3 * ref.abs().max().item())
