"""Tests of softmax against PyTorch."""

import pytest
import torch

from reference_ops import softmax
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Softmax(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(64, 4096), (4, 8, 1024), (3, 32768)]
    _ragged = [(5, 7, 1337), (3, 20011), (6, 1), (1,), ()]
    _empty = [(0,), (3, 0), (0, 5)]
    _huge = (2**19 + 1, 4096)
    _arguments = [{"dim": 0}, {"dim": 1}, {"dim": -2}]
    _tolerances = {torch.float32: {"rtol": 1e-5, "atol": 1e-6}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        return {"x": torch.randn(shape, dtype=dtype, device=device)}

    @staticmethod
    def reference(
        x: torch.Tensor,
        dim: int = -1,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """softmax of PyTorch, in fp32 (fp64 for fp64) and rounded once."""
        wide = torch.promote_types(x.dtype, torch.float32)
        return torch.softmax(x.to(wide), dim).to(x.dtype)

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
        self.assertCorrectness(softmax, self.reference, kwargs, **tolerances, **options)

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
        expected = softmax(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert softmax(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            softmax(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            softmax(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            softmax(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            softmax(**kwargs, unknown=1)

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
    @pytest.mark.parametrize("dim", [0, 1, 2, -1], ids=str)
    @pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 0, 2, 1), (1, 3, 0, 2)], ids=str)
    def test_op_memory_orders(self, order, dim, backend):
        self._setup(backend)
        x = self.inputs((3, 5, 34, 130), self._dtypes[0])["x"].permute(order)[:, :, 1:]
        self._check({"x": x, "dim": dim}, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("shape", "dim"), [((70001, 3), 0), ((2, 9001, 40), 1), ((70001, 5), 1)], ids=str)
    def test_op_long_and_short(self, shape, dim, backend):
        self._setup(backend)
        self._check({**self.inputs(shape, self._dtypes[0]), "dim": dim})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("n", [7, 3000, 20011], ids=str)
    def test_op_masked_rows(self, n, backend):
        self._setup(backend)
        x = self.inputs((4, n), self._dtypes[0])["x"]
        x[1, : n // 2] = -torch.inf
        x[2] = -torch.inf
        x[3, -1] = torch.inf
        self._check({"x": x}, equal_nan=True)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_in_place_and_strided(self, backend):
        self._setup(backend)
        x = self.inputs((6, 5, 34), self._dtypes[0])["x"]
        expected = softmax(x)
        strided = x.new_empty(x.mT.shape).mT
        softmax(x, out=strided)
        softmax(x, out=x)
        assert torch.equal(strided, expected)
        assert torch.equal(x, expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("dim", "error"), [(2, ValueError), (-3, ValueError), (1.0, TypeError)])
    def test_op_bad_dim(self, dim, error, backend):
        self._setup(backend)
        x = torch.ones((2, 3), dtype=self._dtypes[0], device="cuda")
        with pytest.raises(error, match="dim"):
            softmax(x, dim=dim)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_with_gradient(self, backend):
        self._setup(backend)
        x = torch.ones((2, 3), dtype=self._dtypes[0], device="cuda", requires_grad=True)
        with pytest.raises(ValueError, match="out"):
            softmax(x, out=torch.empty_like(x))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dim", [0, 1, 2], ids=str)
    def test_op_backward_over_any_dim(self, dim, backend):
        self._setup(backend)
        x = self.inputs((3, 70, 130), self._dtypes[0])["x"].mT.requires_grad_()
        self._check({"x": x, "dim": dim}, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("n", [8200, 16383, 16384], ids=str)
    def test_op_backward_of_long_rows(self, n, dtype, backend):
        self._setup(backend)
        self._check({"x": self.inputs((2, n), dtype)["x"].requires_grad_()})
