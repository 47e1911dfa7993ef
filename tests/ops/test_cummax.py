"""Tests of cummax against PyTorch."""

import pytest
import torch

from reference_ops import cummax
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Cummax(common.PyTestCase):
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
        dim: int = -1,
        reverse: bool = False,
        out: tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """cummax of PyTorch."""
        device = x.device
        if x.numel() >= 2**31:
            x = x.cpu()  # on a GPU PyTorch 2.11 reads beyond tensors as large as that
        value, index = torch.cummax(x.flip(dim) if reverse else x, dim)
        if reverse:
            n = x.shape[dim] if x.ndim else 1
            value, index = value.flip(dim), n - 1 - index.flip(dim)
        return value.to(device), index.to(device)

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
            values = self.reference(**kwargs)[0].detach().float().nan_to_num(0.0, 0.0, 0.0)
            peak = values.abs().max().item() if values.numel() else 1.0
            tolerances = {"rtol": 1e-2, "atol": 2e-2 * min(1.0, peak)}
        self.assertCorrectness(cummax, self.reference, kwargs, **tolerances, **options)

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
        expected = cummax(**kwargs)
        memory = [x.new_full((x.numel() + 32,), 7) for x in expected]  # with more on either side
        out = tuple(x[16:-16].view(result.shape) for x, result in zip(memory, expected, strict=True))
        assert cummax(**kwargs, out=out) is out
        assert all(torch.equal(*pair) for pair in zip(out, expected, strict=True))
        assert all(torch.cat((x[:16], x[-16:])).eq(7).all() for x in memory)
        for wrong in (out[1:], (*out[1:], out[0].new_empty((*out[0].shape, 2)))):
            with pytest.raises(ValueError, match="out"):
                cummax(**kwargs, out=wrong)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            cummax(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            cummax(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            cummax(**kwargs, unknown=1)

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
    @pytest.mark.parametrize("shape", [(7, 300), (7, 40007)], ids=str)
    def test_op_ties_and_special_values(self, shape, reverse, backend):
        self._setup(backend)
        x = torch.zeros(shape, dtype=self._dtypes[0], device="cuda")
        x[1] = float("-inf")
        x[2] = float("nan")
        x[3, [3, 120, 290]] = float("inf")
        x[4, [3, 290]] = float("nan")
        x[4, [2, 121]] = float("inf")
        x[5] = torch.arange(shape[1], device="cuda") // 7
        x[6] = -x[5]
        self._check({"x": x, "reverse": reverse}, equal_nan=True)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_in_place_and_strided(self, backend):
        self._setup(backend)
        x = self.inputs((6, 5, 34), self._dtypes[0])["x"]
        expected = cummax(x)
        strided = tuple(result.new_empty(result.mT.shape).mT for result in expected)
        for out in (strided, (x, torch.empty_like(expected[1]))):
            cummax(x, out=out)
            assert torch.equal(out[0], expected[0])
            assert torch.equal(out[1], expected[1])

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("dim", "error"), [(2, ValueError), (-3, ValueError), (1.0, TypeError)])
    def test_op_bad_dim(self, dim, error, backend):
        self._setup(backend)
        x = torch.ones((2, 3), dtype=self._dtypes[0], device="cuda")
        with pytest.raises(error, match="dim"):
            cummax(x, dim=dim)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("shape", "dim"), [((2**16 + 1, 2**15), 0), ((2**25, 20), 1)], ids=str)
    def test_op_large_along_any_dimension(self, shape, dim, backend):
        # No row of 2^31 elements: PyTorch 2.11 is wrong for one, on a CPU too
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        dtype = torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]
        self._check({**self.inputs(shape, dtype), "dim": dim})
