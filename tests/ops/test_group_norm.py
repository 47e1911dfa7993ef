"""Tests of group_norm against PyTorch."""

import pytest
import torch

from reference_ops import group_norm
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_GroupNorm(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(4, 16, 16, 16), (2, 8, 4096), (2, 2, 2**17), (32, 4, 64)]
    _ragged = [(3, 6, 7, 11), (2, 4, 1009), (5, 34), (2, 2, 3, 5, 7), (2, 2, 70001), (33, 6, 35), (1, 2, 1)]
    _empty = [(0, 8, 5), (2, 8, 0)]
    _huge = (2**8 + 1, 8, 2**20)
    _arguments = [
        {"eps": 0.1},
        {"weight": None},
        {"bias": None},
        {"weight": None, "bias": None},
        {"num_groups": 1},
        {"num_groups": 6},
    ]
    _tolerances = {torch.float32: {"rtol": 1e-5, "atol": 1e-4}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        return {
            "x": torch.randn(shape, dtype=dtype, device=device),
            "num_groups": 2,
            "weight": torch.randn(shape[1], dtype=dtype, device=device),
            "bias": torch.randn(shape[1], dtype=dtype, device=device),
        }

    @staticmethod
    def reference(
        x: torch.Tensor,
        num_groups: int,
        weight: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
        eps: float = 1e-5,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Group normalization in fp32, rounded once."""
        channel = (-1, *[1] * (x.ndim - 2))
        y = x.float().reshape(x.shape[0], num_groups, x[:1].numel() // num_groups)
        y = y - y.mean(-1, keepdim=True)
        y = (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)).reshape(x.shape)
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
        self.assertCorrectness(group_norm, self.reference, kwargs, **tolerances, **options)

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
        expected = group_norm(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert group_norm(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            group_norm(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            group_norm(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            group_norm(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            group_norm(**kwargs, unknown=1)

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
    @pytest.mark.parametrize("order", [(0, 2, 3, 1), (1, 0, 2, 3), (3, 2, 1, 0)], ids=str)
    def test_op_memory_orders(self, order, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 8, 10, 12), self._dtypes[0])
        kwargs["x"] = kwargs["x"].permute(order).contiguous().permute([order.index(d) for d in range(4)])
        self._check(kwargs, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(70, 4, 300), (3, 4, 40001), (5001, 4)], ids=str)
    def test_op_mean_far_from_zero(self, shape, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[0])
        kwargs["x"] += 8
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("wrong", "error"), [(4, ValueError), (0, ValueError), (2.0, TypeError)], ids=str)
    def test_op_bad_groups(self, wrong, error, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        with pytest.raises(error, match="num_groups"):
            group_norm(**{**kwargs, "num_groups": wrong})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_in_place_and_strided(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 4, 34), self._dtypes[0])
        expected = group_norm(**kwargs)
        strided = expected.new_empty(expected.mT.shape).mT
        group_norm(**kwargs, out=strided)
        group_norm(**kwargs, out=kwargs["x"])
        assert torch.equal(strided, expected)
        assert torch.equal(kwargs["x"], expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("name", ["weight", "bias"])
    def test_op_bad_vector(self, name, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        with pytest.raises(ValueError, match=name):
            group_norm(**{**kwargs, name: kwargs[name][:-1]})
        kwargs[name] = kwargs[name].to(torch.int32)
        with pytest.raises(TypeError, match=name):
            group_norm(**kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_with_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        kwargs["weight"].requires_grad_()
        with pytest.raises(ValueError, match="out"):
            group_norm(**kwargs, out=torch.empty_like(kwargs["x"]))

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
        for name in ("x", "weight", "bias"):
            kwargs[name].requires_grad_()
        self._check(kwargs, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(3, 4, 9001), (300, 64), (290, 6, 257), (1, 4100, 9)], ids=str)
    def test_op_backward_of_long_sums(self, shape, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[0])
        for name in ("x", "weight", "bias"):
            kwargs[name].requires_grad_()
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("missing", [(), ("bias",), ("weight", "bias")], ids="-".join)
    @pytest.mark.parametrize("shape", [(33, 10, 9, 31), (11, 66, 241)], ids=str)
    def test_op_backward_of_many_rows(self, shape, missing, backend):
        self._setup(backend)
        kwargs = {**self.inputs(shape, self._dtypes[0]), **dict.fromkeys(missing)}
        for name in {"x", "weight", "bias"}.difference(missing):
            kwargs[name].requires_grad_()
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_backward_beside_nan(self, backend):
        self._setup(backend)
        kwargs = {**self.inputs((3, 6, 7, 11), self._dtypes[0]), "eps": 0.0}
        kwargs["weight"][3] = float("nan")  # reaches no other group, nor do samples that there are not
        for name in ("x", "weight", "bias"):
            kwargs[name].requires_grad_()
        self._check(kwargs, equal_nan=True)
