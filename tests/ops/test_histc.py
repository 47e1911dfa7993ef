"""Tests of histc against PyTorch."""

import pytest
import torch

from reference_ops import histc
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Histc(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(64, 1024), (4, 8, 2048)]
    _ragged = [(5, 37, 131), (2, 40011), (6, 1), (1,)]
    _empty = [(0,), (3, 0)]
    _huge = (2**19 + 1, 4096)
    _arguments = [
        {"bins": 1},
        {"bins": 9},
        {"bins": 256, "min": -0.75},
        {"bins": 1001, "max": 1.25},
        {"min": 0, "max": 0},
        {"min": 7, "max": 7},
    ]
    _tolerances = {
        torch.float32: {"rtol": 0, "atol": 0},
        torch.float16: {"rtol": 0, "atol": 0},
        torch.bfloat16: {"rtol": 0, "atol": 0},
    }

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        x = torch.randn(shape, dtype=dtype, device=device)
        return {"x": x, "bins": 100, "min": -2, "max": 1.5}

    @staticmethod
    def reference(
        x: torch.Tensor,
        bins: int = 100,
        min: float = 0,
        max: float = 0,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """histc as PyTorch's kernel finds the bins, counted in int64 and rounded once."""
        dtype = torch.float32 if x.element_size() == 2 else x.dtype
        x = x.flatten().to(dtype)
        ends = torch.tensor([min, max], device=x.device).to(x.dtype)
        if ends[0] == ends[1] and x.numel():
            ends = torch.stack(x.aminmax())
        if ends[0] == ends[1]:
            ends = torch.stack([ends[0] - 1, ends[0] + 1])
        low, high = ends
        x = x[(x >= low) & (x <= high)]
        place = (x - low) * bins / (high - low)
        return torch.bincount(place.long().clamp(max=bins - 1), minlength=bins).to(dtype)

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
        self.assertCorrectness(histc, self.reference, kwargs, **tolerances, **options)

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
        expected = histc(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert histc(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            histc(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            histc(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            histc(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            histc(**kwargs, unknown=1)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("size", [1, 9, 100, 256, 257], ids=str)
    @pytest.mark.parametrize("shape", [(127,), (129,), (1023,), (1025,), (1919,), (1921,), (33001,)], ids=str)
    def test_op_lengths_and_bins(self, shape, size, backend):
        self._setup(backend)
        self._check({**self.inputs(shape, self._dtypes[0]), "bins": size})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("shape", "size"),
        [*(((4001,), size) for size in (1, 2, 4, 6, 8, 256, 300)), ((2**21,), 9)],
        ids=str,
    )
    def test_op_all_in_one_bin(self, shape, size, backend):
        self._setup(backend)
        self._check_one_bin(shape, size)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("size", [8, 256], ids=str)
    def test_op_blocks_of_most_rounds(self, size, backend):
        self._setup(backend)
        self._check_one_bin((17000001,), size)

    def _check_one_bin(self, shape, size):
        x = torch.ones(1, dtype=self._dtypes[0], device="cuda").expand(shape)
        position = size - 1
        actual = histc(x, size, -1, 1)
        expected = torch.zeros(size, dtype=actual.dtype, device="cuda")
        expected[position] = x.numel()
        assert torch.equal(actual, expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("pair", [(0, 0), (-1, 2), (-0.1, 0.3), (1e-3, 7), (5, 5)], ids=str)
    @pytest.mark.parametrize("size", [1, 3, 100, 255, 5000], ids=str)
    def test_op_as_histc(self, size, pair, dtype, backend):
        self._setup(backend)
        x = torch.randn(9001, device="cuda").to(dtype)
        expected = torch.histc(x if dtype.itemsize > 2 else x.float(), size, *pair)
        actual = histc(x, size, *pair)
        torch.testing.assert_close(actual, expected, rtol=0, atol=0)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    def test_op_ends_of_bins(self, dtype, backend):
        self._setup(backend)
        values = [0, -0.0, 1, 2, 3, 4, 1.5, 3.5, 0.99, 4.03125, 5, -0.01, -1, float("nan"), float("inf"), float("-inf")]
        actual = histc(torch.tensor(values, dtype=dtype, device="cuda"), 4, 0, 4)
        assert actual.tolist() == [3, 2, 1, 3]

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("wrong", [float("nan"), float("inf"), float("-inf")], ids=str)
    def test_op_extremes_not_finite(self, wrong, backend):
        self._setup(backend)
        x = torch.ones(9, dtype=torch.bfloat16, device="cuda")
        x[4] = wrong
        with pytest.raises(ValueError, match="bins are from"):
            histc(x)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    def test_op_all_the_same(self, dtype, backend):
        self._setup(backend)
        x = torch.full((70,), 3, dtype=dtype, device="cuda")
        assert histc(x, 5).tolist() == [0, 0, 70, 0, 0]
        assert histc(x[:0], 5).tolist() == [0, 0, 0, 0, 0]

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)], ids=str)
    def test_op_memory_orders(self, order, backend):
        self._setup(backend)
        kwargs = self.inputs((9, 17, 34), self._dtypes[0])
        x = kwargs["x"].permute(order)
        for case in (x, x[1:], x[..., 1:], x[:, ::2], x[0, 0, 0], x[:, :1].expand(-1, 4, -1)):
            self._check({**kwargs, "x": case})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_strided_and_overlapping(self, backend):
        self._setup(backend)
        kwargs = self.inputs((70, 30), self._dtypes[0])
        expected = histc(**kwargs)
        out = expected.new_zeros((len(expected), 2))[:, 1]
        assert histc(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        if expected.dtype == kwargs["x"].dtype:
            out = kwargs["x"].view(-1)[: len(expected)]
            assert torch.equal(histc(**kwargs, out=out), expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("wrong", "error", "match"),
        [
            ({"bins": 0}, ValueError, "bins is 0"),
            ({"bins": -3}, ValueError, "bins is -3"),
            ({"bins": 2.0}, TypeError, "bins is 2.0"),
            ({"min": "0"}, TypeError, "min is '0'"),
            ({"max": None}, TypeError, "max is None"),
            ({"min": 2, "max": 1}, ValueError, "bins are from 2.* to 1.*; max must be greater than min"),
            ({"min": 0, "max": float("inf")}, ValueError, "bins are from 0.0 to inf"),
            ({"min": float("nan"), "max": 1}, ValueError, "bins are from nan to 1.0"),
            ({"min": -1, "max": 1e308}, ValueError, "bins are from -1.0 to"),
        ],
        ids=str,
    )
    def test_op_bad_arguments(self, wrong, error, match, backend):
        self._setup(backend)
        kwargs = {**self.inputs((9,), self._dtypes[0]), **wrong}
        with pytest.raises(error, match=match):
            histc(**kwargs)
