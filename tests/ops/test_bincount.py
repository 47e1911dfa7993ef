"""Tests of bincount against PyTorch."""

import pytest
import torch

from reference_ops import bincount
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Bincount(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.int32, torch.int64]
    _aligned = [(64, 1024), (4, 8, 2048)]
    _ragged = [(5, 37, 131), (2, 40011), (6, 1), (1,)]
    _empty = [(0,), (3, 0)]
    _huge = (2**19 + 1, 4096)
    _arguments = [
        {"bins": 1001},
        {"bins": 17},
        {"bins": None},
        {"bins": None, "minlength": 9},
        {"bins": None, "minlength": 1001},
    ]
    _tolerances = {
        torch.int32: {"rtol": 0, "atol": 0},
        torch.int64: {"rtol": 0, "atol": 0},
    }

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        return {"x": torch.randint(-9, 110, shape, dtype=dtype, device=device).abs(), "bins": 100}

    @staticmethod
    def reference(
        x: torch.Tensor,
        minlength: int = 0,
        bins: int | None = None,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """bincount of PyTorch, of what is in the bins."""
        if bins is None:
            return torch.bincount(x.flatten(), minlength=minlength)
        return torch.bincount(x[(x >= 0) & (x < bins)], minlength=bins)

    def _setup(self, backend):
        if not is_backend_available(backend):
            pytest.skip(f"backend {backend} is not available")
        set_backend(backend)
        self.setUp()

    def _check(self, kwargs, **options):
        dtype = next(iter(kwargs.values())).dtype
        tolerances = self._tolerances.get(dtype, {})
        self.assertCorrectness(bincount, self.reference, kwargs, **tolerances, **options)

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
    def test_op_out(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        expected = bincount(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert bincount(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            bincount(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            bincount(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            bincount(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            bincount(**kwargs, unknown=1)

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
        x = torch.randint(0, size, shape, dtype=self._dtypes[0], device="cuda")
        self._check({"x": x})
        self._check({"x": x, "minlength": size + 7})
        self._check({"x": x, "bins": size})

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
        actual = bincount(x * position, bins=size)
        expected = torch.zeros(size, dtype=torch.int64, device="cuda")
        expected[position] = x.numel()
        assert torch.equal(actual, expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("wrong", [-1, -256, -(2**31), 2**31 - 1], ids=str)
    def test_op_value_outside(self, wrong, dtype, backend):
        self._setup(backend)
        x = torch.arange(9, dtype=dtype, device="cuda")
        x[5] = wrong
        with pytest.raises(ValueError, match=f"x has elements from .*{wrong}"):
            bincount(x)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("wrong", [2**32 + 1, -(2**32) + 1, 2**63 - 1, -(2**63)], ids=str)
    def test_op_value_beyond_int32(self, wrong, backend):
        self._setup(backend)
        x = torch.tensor([3, wrong, 3], device="cuda")
        for size in (9, 400):
            actual = bincount(x, bins=size)
            assert actual[3] == actual.sum() == 2
        with pytest.raises(ValueError, match=f"x has elements from .*{wrong}"):
            bincount(x, 400)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("minlength", "most"), [(1, 7), (1, 8), (9, 15), (9, 16), (200, 255), (200, 300)], ids=str)
    def test_op_values_beyond_minlength(self, minlength, most, backend):
        self._setup(backend)
        x = torch.randint(0, most + 1, (1023,), dtype=self._dtypes[0], device="cuda")
        x[-1] = most
        self._check({"x": x, "minlength": minlength})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    def test_op_values_far_apart(self, dtype, backend):
        self._setup(backend)
        x = torch.tensor([255, 0, 256, 70000, 256], dtype=dtype, device="cuda")
        actual = bincount(x)
        assert actual.shape == (70001,)
        assert actual.nonzero()[:, 0].tolist() == [0, 255, 256, 70000]
        assert actual[[0, 255, 256, 70000]].tolist() == [1, 1, 2, 1]
        assert bincount(x, 80000).shape == (80000,)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_of_nothing(self, backend):
        self._setup(backend)
        x = torch.empty(0, dtype=self._dtypes[0], device="cuda")
        assert bincount(x).shape == (0,)
        assert bincount(x, 3).tolist() == [0, 0, 0]
        assert bincount(x, bins=3).tolist() == [0, 0, 0]
        assert bincount(x.new_ones(5), bins=0).shape == (0,)

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
        expected = bincount(**kwargs)
        out = expected.new_zeros((len(expected), 2))[:, 1]
        assert bincount(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        if expected.dtype == kwargs["x"].dtype:
            out = kwargs["x"].view(-1)[: len(expected)]
            assert torch.equal(bincount(**kwargs, out=out), expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("wrong", "error", "match"),
        [
            ({"bins": -1}, ValueError, "bins is -1"),
            ({"bins": 2.0}, TypeError, "bins is 2.0"),
            ({"bins": 2**31}, ValueError, "bins is 2147483648"),
            ({"minlength": -1}, ValueError, "minlength is -1"),
            ({"minlength": 2.0}, TypeError, "minlength is 2.0"),
            ({"minlength": 2**31}, ValueError, "minlength is 2147483648"),
        ],
        ids=str,
    )
    def test_op_bad_arguments(self, wrong, error, match, backend):
        self._setup(backend)
        kwargs = {**self.inputs((9,), self._dtypes[0]), **wrong}
        with pytest.raises(error, match=match):
            bincount(**kwargs)
