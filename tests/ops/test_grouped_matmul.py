"""Tests of grouped_matmul against PyTorch."""

import pytest
import torch

from reference_ops import grouped_matmul
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_GroupedMatmul(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    # Rows of each group, rows after the last one, N, K
    _aligned = [
        ((1536, 0, 512, 2048), 0, 2304, 64),
        ((128, 384), 256, 128, 256),
        ((16,) * 8, 0, 64, 64),
    ]
    _ragged = [
        ((131, 1, 0, 70), 9, 67, 37),
        ((0, 0, 5), 0, 301, 129),
        ((1,), 0, 1, 1),
        ((65, 65, 65), 1, 40, 50),
        ((3, 0, 1, 2, 0, 0, 9, 1, 1), 2, 50, 200),
    ]
    _empty = [((0, 0), 0, 5, 7), ((3, 2), 1, 0, 7), ((3, 2), 1, 5, 0), ((0, 0), 4, 5, 7), ((), 4, 5, 7)]
    _huge = ((2**16, 2**16 + 1), 7, 2**14 + 8, 16)
    _arguments = []
    _tolerances = {torch.float32: {"rtol": 1e-5, "atol": 1e-4}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        groups, rest, n, k = shape
        sizes = torch.tensor(groups, dtype=torch.int32)
        scale = max(k, 1) ** -0.25  # results are around 1

        def random(*size):
            return scale * torch.randn(size, dtype=dtype, device=device)

        return {
            "a": random(int(sizes.sum()) + rest, k),
            "b": random(len(groups), k, n),
            "offsets": sizes.cumsum(0, dtype=torch.int32).to(device),
        }

    @staticmethod
    def reference(
        a: torch.Tensor,
        b: torch.Tensor,
        offsets: torch.Tensor,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Group by group in fp32, for fp32 in fp64, rounded once."""
        wide = torch.float64 if a.element_size() > 2 else torch.float32
        acc = torch.zeros((a.shape[0], b.shape[2]), dtype=wide, device=a.device)
        ends = offsets.tolist()[len(offsets) - len(b) :]
        for start, end, x in zip([0, *ends], ends, b, strict=False):
            acc[start:end] = torch.matmul(a[start:end].to(wide), x.to(wide))
        return acc.to(a.dtype)

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
        self.assertCorrectness(grouped_matmul, self.reference, kwargs, **tolerances, **options)

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
        expected = grouped_matmul(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert grouped_matmul(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            grouped_matmul(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            grouped_matmul(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            grouped_matmul(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            grouped_matmul(**kwargs, unknown=1)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", [((1,), 0, 37, 50), ((131, 1, 0, 70), 9, 67, 37)], ids=str)
    def test_op_out_in_wider_rows(self, shape, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, dtype)
        expected = grouped_matmul(**kwargs)
        *leading, size = expected.shape
        memory = expected.new_full((*leading, size // 16 * 16 + 32), 7)
        grouped_matmul(**kwargs, out=memory[..., :size])
        assert torch.equal(memory[..., :size], expected)
        assert memory[..., size:].eq(7).all()

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
    @pytest.mark.parametrize("first", [[], [0]], ids=["ends", "starts and ends"])
    def test_op_offsets(self, first, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[-1])
        offsets = [*first, *kwargs["offsets"].tolist()]
        self._check({**kwargs, "offsets": torch.tensor(offsets, dtype=dtype, device="cuda")})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
    def test_op_offsets_beyond_the_rows(self, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(((70, 60, 50), 0, 40, 20), self._dtypes[-1])
        expected = grouped_matmul(**kwargs)
        kwargs["offsets"] = torch.tensor([70, 130, torch.iinfo(dtype).max], dtype=dtype, device="cuda")
        assert torch.equal(grouped_matmul(**kwargs), expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("largest", [1, 20])
    def test_op_many_groups(self, largest, backend):
        self._setup(backend)
        groups = tuple(torch.randint(largest + 1, (150,)).tolist())
        self._check(self.inputs((groups, 17, 30, 20), self._dtypes[-1]))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_groups_have_nothing_of_each_other(self, backend):
        self._setup(backend)
        kwargs = self.inputs(((65, 0, 63, 1, 130), 20, 40, 100), self._dtypes[0])
        expected = grouped_matmul(**kwargs)
        kwargs["b"][[1, 3]] = float("nan")
        kwargs["a"][65:128] = float("nan")
        kwargs["a"][259:] = float("nan")
        expected[65:129] = float("nan")
        actual = grouped_matmul(**kwargs)
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
        assert not expected[259:].any()

    @pytest.mark.parametrize("backend", _backends)
    def test_op_strided_out(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        expected = grouped_matmul(**kwargs)
        out = torch.full_like(expected.mT.contiguous(), float("nan")).mT
        grouped_matmul(**kwargs, out=out)
        assert torch.equal(out, expected)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_is_an_operand(self, backend):
        self._setup(backend)
        kwargs = self.inputs(((100, 30), 10, 90, 90), self._dtypes[0])
        expected = grouped_matmul(**kwargs)
        grouped_matmul(**kwargs, out=kwargs["a"])
        assert torch.equal(kwargs["a"], expected)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_without_groups_or_terms(self, backend):
        self._setup(backend)
        for shape in self._empty:
            kwargs = self.inputs(shape, self._dtypes[0])
            out = torch.full_like(self.reference(**kwargs), float("nan"))
            assert not grouped_matmul(**kwargs, out=out).any()

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("name", ["a", "b"])
    def test_op_equal_rows(self, name, backend):
        self._setup(backend)
        kwargs = self.inputs(((48, 20), 0, 80, 64), self._dtypes[0])
        kwargs[name] = kwargs[name][:1].expand_as(kwargs[name])
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("name", ["a", "b", "offsets"])
    def test_op_shapes_that_do_not_fit(self, name, backend):
        self._setup(backend)
        kwargs = self.inputs(((9, 7), 0, 32, 64), self._dtypes[0])
        x = kwargs[name]
        for wrong in (x.expand(2, *x.shape), x.flatten()[0], x[1:, 1:] if name == "b" else x[..., 1:]):
            with pytest.raises(ValueError, match="has shape"):
                grouped_matmul(**{**kwargs, name: wrong})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_too_many_groups(self, backend):
        self._setup(backend)
        kwargs = self.inputs(((1,) * 4096, 0, 1, 1), self._dtypes[0])
        with pytest.raises(ValueError, match="b has 4096 matrices"):
            grouped_matmul(**kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("name", ["b", "offsets"])
    def test_op_dtypes_that_do_not_fit(self, name, backend):
        self._setup(backend)
        kwargs = self.inputs(((9, 7), 0, 32, 64), self._dtypes[0])
        wrong = kwargs[name].to(torch.int16)
        with pytest.raises(TypeError, match=f"^{name} is torch.int16"):
            grouped_matmul(**{**kwargs, name: wrong})
        wrong = kwargs[name].cpu()
        with pytest.raises(ValueError, match=f"^{name} is on cpu"):
            grouped_matmul(**{**kwargs, name: wrong})
