"""Tests of cumsum against PyTorch."""

import pytest
import torch

from reference_ops import cumsum
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Cumsum(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(8, 4096), (2, 3, 1024)]
    _ragged = [(5, 7, 1337), (2, 20011), (6, 1), (1,), ()]
    _empty = [(0,), (3, 0), (0, 5)]
    _huge = (2**19 + 1, 4096)
    _arguments = [
        {"dim": 0},
        {"dim": 1, "reverse": True},
        {"reverse": True},
        {"exclusive": True},
        {"dim": 1, "exclusive": True},
        {"reverse": True, "exclusive": True},
    ]
    _tolerances = {torch.float32: {"rtol": 1e-5, "atol": 1e-5}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        # Around 1, so that no result is the small difference of large sums.
        return {"x": 1 + torch.randn(shape, dtype=dtype, device=device), "dim": -1}

    @staticmethod
    def reference(
        x: torch.Tensor,
        dim: int = -1,
        reverse: bool = False,
        exclusive: bool = False,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """cumsum of PyTorch, in fp64 and rounded once."""
        y = x.to(torch.float64)
        y = y.flip(dim) if reverse else y
        y = torch.cumsum(y, dim)
        if exclusive:
            y = y.roll(1, dim)
            y.select(dim, 0).fill_(0)
        return (y.flip(dim) if reverse else y).to(x.dtype)

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
        self.assertCorrectness(cumsum, self.reference, kwargs, **tolerances, **options)

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
        expected = cumsum(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert cumsum(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            cumsum(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            cumsum(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            cumsum(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            cumsum(**kwargs, unknown=1)

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
        x = self.inputs((3, 5, 34, 30), self._dtypes[0])["x"].permute(order)[:, :, 1:]
        self._check({"x": x, "dim": dim}, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize(("shape", "dim"), [((2, 40007), 1), ((3001, 3, 5), 0), ((2, 3001, 3), 1)], ids=str)
    def test_op_split(self, shape, dim, reverse, backend):
        self._setup(backend)
        self._check({**self.inputs(shape, self._dtypes[0]), "dim": dim, "reverse": reverse})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("reverse", [False, True])
    def test_op_infinity_reaches_only_what_follows(self, reverse, backend):
        self._setup(backend)
        x = torch.ones(3, 5000, dtype=self._dtypes[0], device="cuda")
        x[0, 4500] = float("inf")
        x[1, 13] = float("inf")
        x[1, 4501] = float("-inf")
        x[2, 9] = float("nan")
        self._check({"x": x, "reverse": reverse}, equal_nan=True)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_in_place_and_strided(self, backend):
        self._setup(backend)
        x = self.inputs((6, 5, 34), self._dtypes[0])["x"]
        expected = cumsum(x)
        strided = expected.new_empty(expected.mT.shape).mT
        cumsum(x, out=strided)
        assert torch.equal(strided, expected)
        in_place = x.clone()
        cumsum(in_place, out=in_place)
        assert torch.equal(in_place, expected)
        expected = cumsum(x, exclusive=True)
        cumsum(x, exclusive=True, out=x)
        assert torch.equal(x, expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("dim", "error"), [(2, ValueError), (-3, ValueError), (1.0, TypeError)])
    def test_op_bad_dim(self, dim, error, backend):
        self._setup(backend)
        x = torch.ones((2, 3), dtype=self._dtypes[0], device="cuda")
        with pytest.raises(error, match="dim"):
            cumsum(x, dim=dim)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("shape", "dim"), [((2**31 + 5,), 0), ((2**16 + 1, 2**15), 0), ((2**25, 20), 1)], ids=str)
    def test_op_large_along_any_dimension(self, shape, dim, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        dtype = torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]
        self._check({**self.inputs(shape, dtype), "dim": dim})
