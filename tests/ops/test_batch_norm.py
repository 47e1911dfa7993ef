"""Tests of batch_norm against PyTorch."""

import pytest
import torch

from reference_ops import batch_norm
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_BatchNorm(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _trained = ["x", "weight", "bias"]  # that have a gradient
    _aligned = [(4, 16, 16, 16), (2, 8, 4096), (2, 2, 2**17), (2, 64, 64)]
    _ragged = [(3, 6, 7, 11), (2, 4, 1009), (5, 34), (2, 2, 3, 5, 7), (2, 2, 70001), (2, 65, 35)]
    _empty = [(0, 8, 5), (2, 8, 0)]
    _huge = (2**8 + 1, 8, 2**20)
    _arguments = [
        {"eps": 0.1},
        {"weight": None},
        {"bias": None},
        {"weight": None, "bias": None},
        {"training": True},
        {"training": True, "momentum": 0.5},
        {"training": True, "running_mean": None, "running_var": None},
    ]
    _tolerances = {torch.float32: {"rtol": 1e-5, "atol": 1e-4}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        return {
            "x": torch.randn(shape, dtype=dtype, device=device),
            "running_mean": torch.randn(shape[1], device=device),
            "running_var": torch.rand(shape[1], device=device) + 0.5,
            "weight": torch.randn(shape[1], dtype=dtype, device=device),
            "bias": torch.randn(shape[1], dtype=dtype, device=device),
        }

    @staticmethod
    def reference(
        x: torch.Tensor,
        running_mean: torch.Tensor | None = None,
        running_var: torch.Tensor | None = None,
        weight: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Batch normalization in fp32, rounded once."""
        channel = (-1, *[1] * (x.ndim - 2))
        y = x.float()
        if training:
            dims = [d for d in range(x.ndim) if d != 1]
            mean, var = y.mean(dims), y.var(dims, correction=0)
            if running_mean is not None:
                count = x.numel() / x.shape[1]
                running_mean.lerp_(mean.detach(), momentum)
                running_var.lerp_(var.detach() * count / (count - 1), momentum)
        else:
            mean, var = running_mean, running_var
        y = (y - mean.view(channel)) * torch.rsqrt(var.view(channel) + eps)
        if weight is not None:
            y = y * weight.float().view(channel)
        if bias is not None:
            y = y + bias.float().view(channel)
        return y.to(x.dtype)

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
            values = self.reference(**kwargs).detach().float().nan_to_num(0.0, 0.0, 0.0)
            peak = values.abs().max().item() if values.numel() else 1.0
            tolerances = {"rtol": 1e-2, "atol": 2e-2 * min(1.0, peak)}
        self.assertCorrectness(batch_norm, self.reference, kwargs, **tolerances, **options)

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
        for x in (kwargs[name] for name in self._trained):
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
        expected = batch_norm(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert batch_norm(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            batch_norm(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            batch_norm(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            batch_norm(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            batch_norm(**kwargs, unknown=1)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", _aligned + _ragged + _empty, ids=str)
    def test_op_backward(self, shape, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, dtype)
        for x in (kwargs[name] for name in self._trained):
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
    @pytest.mark.parametrize("order", [(0, 2, 3, 1), (1, 0, 2, 3), (3, 2, 1, 0)], ids=str)
    def test_op_memory_orders(self, order, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 8, 10, 12), self._dtypes[0])
        kwargs["x"] = kwargs["x"].permute(order).contiguous().permute([order.index(d) for d in range(4)])
        kwargs["training"] = True
        self._check(kwargs, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(70, 4, 300), (3, 4, 40001), (5001, 4)], ids=str)
    def test_op_mean_far_from_zero(self, shape, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[0])
        kwargs["x"] += 8
        kwargs["training"] = True
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(3, 6, 7, 11), (2, 4, 20011), (300, 5), (9, 2100)], ids=str)
    def test_op_running_statistics(self, shape, backend):
        self._setup(backend)
        inputs = self.inputs(shape, self._dtypes[0])
        expected = {name: x.clone() for name, x in inputs.items()}
        self.reference(**expected, training=True, momentum=0.3)
        for _ in range(5):  # they are read and written: threads of a block must not do it one after another
            kwargs = {name: x.clone() for name, x in inputs.items()}
            batch_norm(**kwargs, training=True, momentum=0.3)
            for name in ("running_mean", "running_var"):
                torch.testing.assert_close(kwargs[name], expected[name], rtol=1e-5, atol=1e-5)
                assert not torch.equal(kwargs[name], inputs[name])

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", _aligned + _ragged, ids=str)
    def test_op_backward_of_training(self, shape, dtype, backend):
        self._setup(backend)
        kwargs = {**self.inputs(shape, dtype), "training": True}
        for name in self._trained:
            kwargs[name].requires_grad_()
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("missing", [(), ("weight",), ("bias",)], ids="-".join)
    @pytest.mark.parametrize("training", [False, True])
    def test_op_backward_of_many_channels(self, training, missing, backend):
        self._setup(backend)
        kwargs = {**self.inputs((5, 66, 9, 241), self._dtypes[0]), **dict.fromkeys(missing), "training": training}
        for name in {"x", "weight", "bias"}.difference(missing):
            kwargs[name].requires_grad_()
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_bad_statistics(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        with pytest.raises(ValueError, match="running_var"):
            batch_norm(**{**kwargs, "running_var": None})
        with pytest.raises(TypeError, match="running_mean"):
            batch_norm(**{**kwargs, "running_mean": kwargs["running_mean"].half()})
        with pytest.raises(ValueError, match="more than one"):
            batch_norm(**{**kwargs, "x": kwargs["x"][:1], "training": True})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_in_place_and_strided(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 4, 34), self._dtypes[0])
        expected = batch_norm(**kwargs)
        strided = expected.new_empty(expected.mT.shape).mT
        batch_norm(**kwargs, out=strided)
        batch_norm(**kwargs, out=kwargs["x"])
        assert torch.equal(strided, expected)
        assert torch.equal(kwargs["x"], expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("name", ["weight", "bias"])
    def test_op_bad_vector(self, name, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        with pytest.raises(ValueError, match=name):
            batch_norm(**{**kwargs, name: kwargs[name][:-1]})
        kwargs[name] = kwargs[name].to(torch.int32)
        with pytest.raises(TypeError, match=name):
            batch_norm(**kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_with_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        kwargs["weight"].requires_grad_()
        with pytest.raises(ValueError, match="out"):
            batch_norm(**kwargs, out=torch.empty_like(kwargs["x"]))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("missing", [("weight",), ("bias",), ("weight", "bias")], ids="-".join)
    def test_op_backward_without(self, missing, backend):
        self._setup(backend)
        kwargs = self.inputs((9, 4, 300), self._dtypes[0])
        kwargs.update(dict.fromkeys(missing))
        kwargs["x"].requires_grad_()
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0)], ids=str)
    def test_op_backward_of_memory_orders(self, order, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 98, 100), self._dtypes[0])
        kwargs["x"] = kwargs["x"].permute(order).contiguous().permute(order)
        kwargs["training"] = True
        for name in ("x", "weight", "bias"):
            kwargs[name].requires_grad_()
        self._check(kwargs, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(3, 4, 9001), (300, 64), (290, 6, 257), (1, 4100, 9)], ids=str)
    def test_op_backward_of_long_sums(self, shape, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[0])
        kwargs["training"] = True
        for name in ("x", "weight", "bias"):
            kwargs[name].requires_grad_()
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_backward_beside_nan(self, backend):
        self._setup(backend)
        kwargs = {**self.inputs((3, 6, 7, 11), self._dtypes[0]), "eps": 0.0}
        kwargs["weight"][3] = float("nan")  # reaches no other channel, nor do samples that there are not
        kwargs["training"] = True
        for name in ("x", "weight", "bias"):
            kwargs[name].requires_grad_()
        self._check(kwargs, equal_nan=True)
