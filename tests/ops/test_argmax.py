"""Tests of argmax against PyTorch."""

import pytest
import torch

from reference_ops import argmax
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Argmax(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(4, 16, 4096), (8, 1024)]
    _ragged = [(5, 7, 1021), (3, 20011), (2, 3, 1), (1,)]
    _empty = [(0, 5)]
    _huge = (2**31 + 5,)
    _arguments = [
        {"dim": 0},
        {"dim": 1, "keepdim": True},
        {"dim": None},
        {"dim": None, "keepdim": True},
    ]
    _tolerances = {
        torch.float32: {"rtol": 0, "atol": 0},
        torch.float16: {"rtol": 0, "atol": 0},
        torch.bfloat16: {"rtol": 0, "atol": 0},
    }

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        return {"x": torch.randn(shape, dtype=dtype, device=device), "dim": -1}

    @staticmethod
    def reference(
        x: torch.Tensor,
        dim: int | None = None,
        keepdim: bool = False,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """argmax of PyTorch."""
        return torch.argmax(x, dim=dim, keepdim=keepdim)

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
        self.assertCorrectness(argmax, self.reference, kwargs, **tolerances, **options)

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
        expected = argmax(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert argmax(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            argmax(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            argmax(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            argmax(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            argmax(**kwargs, unknown=1)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dim", [0, 1, 2, -1, None], ids=str)
    @pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 0, 2, 1), (1, 3, 0, 2)], ids=str)
    def test_op_memory_orders(self, order, dim, backend):
        self._setup(backend)
        kwargs = self.inputs((3, 5, 34, 130), self._dtypes[0])
        kwargs["x"] = kwargs["x"].permute(order)[:, :, 1:]
        self._check({**kwargs, "dim": dim}, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("shape", "dim"), [((2, 300007), 1), ((50021, 3, 5), 0), ((2, 50021, 3), 1)])
    def test_op_split(self, shape, dim, backend):
        self._setup(backend)
        x = self.inputs(shape, self._dtypes[0])["x"]
        self._check({"x": x, "dim": dim})
        self._check({"x": x[..., 1:], "dim": dim})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_scalar(self, backend):
        self._setup(backend)
        for dim in (None, 0, -1):
            self._check({**self.inputs((), self._dtypes[0]), "dim": dim})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dim", [0, 1, 2])
    def test_op_far_from_zero(self, dim, backend):
        self._setup(backend)
        kwargs = self.inputs((3, 5, 1021), self._dtypes[0])
        kwargs["x"] = -1 - kwargs["x"].abs()  # zeros beyond the end must not win
        self._check({**kwargs, "dim": dim})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_first_of_ties(self, backend):
        self._setup(backend)
        x = torch.zeros(2, 300007, dtype=self._dtypes[0], device="cuda")
        x[1, [70001, 70003, 200003]] = 1
        assert argmax(x, dim=1).tolist() == [0, 70001]

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("dim", [0, 1])
    def test_op_first_of_special_ties(self, dim, dtype, backend):
        self._setup(backend)
        x = torch.zeros(7, 4096, dtype=dtype, device="cuda")
        x[0, 0] = -0.0  # equals 0.0
        x[1] = float("-inf")
        x[2] = float("nan")
        x[3, [1001, 1002, 4000]] = float("inf")
        x[4, [3, 500, 4001]] = torch.tensor([float("inf"), float("-inf"), float("nan")], dtype=dtype, device="cuda")
        x[5, [701, 700]] = torch.tensor([float("nan"), -float("nan")], dtype=dtype, device="cuda")
        x[6] = torch.arange(-1, -4097, -1, device="cuda")
        x = x if dim == 1 else x.mT.contiguous()
        assert argmax(x, dim=dim).tolist() == [0, 0, 0, 1001, 4001, 700, 0]

    @pytest.mark.parametrize("backend", _backends)
    def test_op_nothing_to_choose_from(self, backend):
        self._setup(backend)
        x = torch.empty((3, 0), dtype=self._dtypes[0], device="cuda")
        with pytest.raises(ValueError, match="empty"):
            argmax(x, dim=1)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("dim", "error"), [(2, ValueError), (-3, ValueError), (1.0, TypeError)])
    def test_op_bad_dim(self, dim, error, backend):
        self._setup(backend)
        x = torch.ones((2, 3), dtype=self._dtypes[0], device="cuda")
        with pytest.raises(error, match="dim"):
            argmax(x, dim=dim)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_strided_out(self, backend):
        self._setup(backend)
        kwargs = {**self.inputs((6, 5, 34), self._dtypes[0]), "dim": 1}
        expected = argmax(**kwargs)
        out = expected.new_empty(expected.mT.shape).mT
        argmax(**kwargs, out=out)
        assert torch.equal(out, expected)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("shape", "dim"), [((2**19 + 1, 4096), 1), ((2**19 + 1, 4096), 0), ((3, 2**30), 0)])
    def test_op_more_than_int32_reduced(self, shape, dim, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        dtype = torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]
        self._check({**self.inputs(shape, dtype), "dim": dim})
