"""Tests of rope against PyTorch."""

import pytest
import torch

from reference_ops import rope
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Rope(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _trained = ["x"]  # that have a gradient
    _aligned = [(2, 4, 64, 64), (3, 16, 128)]
    _ragged = [(2, 3, 37, 96), (3, 5, 2, 7, 33), (5, 80), (10,), (1,)]
    _empty = [(0,), (3, 0), (2, 0, 4, 64)]
    _huge = (2**12 + 1, 4, 1024, 128)
    _arguments = []
    # fp32: differences of products, whose rounding is relative to the larger one
    _tolerances = {torch.float32: {"rtol": 1e-5, "atol": 5e-5}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        angles = torch.randn((*shape[-2:-1], shape[-1] // 2), device=device)
        return {
            "x": torch.randn(shape, dtype=dtype, device=device),
            "cos": angles.cos().to(dtype),
            "sin": angles.sin().to(dtype),
        }

    @staticmethod
    def reference(
        x: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Rotation of pairs in fp32 (fp64 for fp64), rounded once."""
        half = cos.shape[-1]
        wide = torch.promote_types(x.dtype, torch.float32)
        pairs, rest = x[..., : 2 * half].to(wide), x[..., 2 * half :]
        a, b = pairs.chunk(2, dim=-1) if half else (pairs, pairs)
        turned = torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
        return torch.cat([turned.to(x.dtype), rest], dim=-1)

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
        self.assertCorrectness(rope, self.reference, kwargs, **tolerances, **options)

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
        expected = rope(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert rope(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            rope(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            rope(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            rope(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            rope(**kwargs, unknown=1)

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
    @pytest.mark.parametrize(
        "leading", [(2, 1, 37), (1, 3, 37), (37,), (1, 1, 1), (2, 1, 1), (2, 3, 1), (2, 3, 37)], ids=str
    )
    @pytest.mark.parametrize("half", [16, 10, 0], ids=str)
    def test_op_angles_of_any_shape(self, half, leading, backend):
        self._setup(backend)
        kwargs = self.inputs((2, 3, 37, 48), self._dtypes[0])
        angles = torch.randn((*leading, half), dtype=self._dtypes[0], device="cuda")
        kwargs.update(cos=angles.cos(), sin=angles.sin())
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dims", [(0, 2, 1, 3), (2, 0, 1, 3), (1, 2, 3, 0)], ids=str)
    def test_op_memory_orders(self, dims, backend):
        self._setup(backend)
        kwargs = self.inputs((4, 5, 6, 40), self._dtypes[0])
        kwargs["x"] = kwargs["x"].permute(dims).contiguous().permute([dims.index(d) for d in range(4)])
        self._check(kwargs, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("half", [20, 12], ids=str)
    def test_op_out_in_place_and_strided(self, half, backend):
        self._setup(backend)
        kwargs = self.inputs((3, 6, 5, 40), self._dtypes[0])
        kwargs.update(cos=kwargs["cos"][..., :half], sin=kwargs["sin"][..., :half])
        expected = rope(**kwargs)
        strided = expected.new_empty(expected.mT.shape).mT
        rope(**kwargs, out=strided)
        rope(**kwargs, out=kwargs["x"])
        assert torch.equal(strided, expected)
        assert torch.equal(kwargs["x"], expected)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_overlaps_its_input(self, backend):
        self._setup(backend)
        kwargs = self.inputs((3, 6, 5, 40), self._dtypes[0])
        expected = rope(**kwargs)
        pair = torch.cat([kwargs["x"].view(-1), kwargs["x"].view(-1)])
        kwargs["x"] = pair[: expected.numel()].view(expected.shape)
        out = pair[5 : 5 + expected.numel()].view(expected.shape)
        rope(**kwargs, out=out)
        assert torch.equal(out, expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("name", ["cos", "sin"])
    def test_op_bad_angles(self, name, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        for wrong in (kwargs[name][:-1], kwargs[name].repeat(1, 2), kwargs[name][None], kwargs[name].sum()):
            with pytest.raises(ValueError, match=name):
                rope(**{**kwargs, name: wrong})
        with pytest.raises(ValueError, match="shape"):
            rope(**{**kwargs, name: kwargs[name][:1]})
        with pytest.raises(TypeError, match=name):
            rope(**{**kwargs, name: kwargs[name].int()})
        kwargs[name].requires_grad_()
        with pytest.raises(ValueError, match="gradient"):
            rope(**kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_with_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        kwargs["x"].requires_grad_()
        with pytest.raises(ValueError, match="out"):
            rope(**kwargs, out=torch.empty_like(kwargs["x"]))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_expanded_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        expected = kwargs["x"].clone().requires_grad_()
        kwargs["x"].requires_grad_()
        rope(**kwargs).sum().backward()
        self.reference(**{**kwargs, "x": expected}).sum().backward()
        torch.testing.assert_close(kwargs["x"].grad, expected.grad, rtol=1e-2, atol=1e-2)
