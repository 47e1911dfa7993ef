"""Tests of scaled_matmul against PyTorch."""

import pytest
import torch

from reference_ops import scaled_matmul
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_ScaledMatmul(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float8_e4m3fn]
    # (M, N, K) and what shares a scale
    _aligned = [
        (2304, 2048, 384, "rows"),
        (256, 384, 512, "blocks"),
        (128, 256, 4096, "tensors"),
        (32, 128, 2048, "blocks"),
    ]
    _ragged = [
        (131, 67, 37, "rows"),
        (133, 261, 300, "blocks"),
        (1, 1, 1, "tensors"),
        (5, 301, 2200, "blocks"),
        (7, 50, 2051, "rows"),
    ]
    _empty = [(0, 5, 7, "rows"), (5, 0, 7, "tensors"), (5, 7, 0, "blocks")]
    _huge = (2**17 + 1, 2**14 + 8, 16, "rows")
    _arguments = [{"out_dtype": torch.float16}, {"out_dtype": torch.float32}]
    _tolerances = {torch.float8_e4m3fn: {"rtol": 1e-2, "atol": 1e-2}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        m, n, k, scales = shape

        def quantized(x, rows, columns):
            """Blocks of x, divided by units that make the largest number of each the largest of the dtype."""
            rows, columns = max(rows, 1), max(columns, 1)
            high, wide = -(-x.shape[0] // rows), -(-x.shape[1] // columns)
            blocks = x.new_zeros((high * rows, wide * columns))
            blocks[: x.shape[0], : x.shape[1]] = x
            blocks = blocks.view(high, rows, wide, columns)
            unit = blocks.abs().amax((1, 3), keepdim=True) / torch.finfo(dtype).max
            values = (blocks / unit).to(dtype).view(high * rows, wide * columns)
            return values[: x.shape[0], : x.shape[1]].contiguous(), unit.view(high, wide)

        of_a, of_b = {"tensors": ((m, k), (n, k)), "rows": ((1, k), (1, k)), "blocks": ((1, 128), (128, 128))}[scales]
        size = max(k, 1) ** -0.25  # results are around 1
        a, scale_a = quantized(size * torch.randn((m, k), device=device), *of_a)
        b, scale_b = quantized(size * torch.randn((n, k), device=device), *of_b)
        return {
            "a": a,
            "b": b.mT,
            "scale_a": scale_a,
            "scale_b": scale_b.mT,
        }

    @staticmethod
    def reference(
        a: torch.Tensor,
        b: torch.Tensor,
        scale_a: torch.Tensor,
        scale_b: torch.Tensor,
        out_dtype: torch.dtype = torch.bfloat16,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The product of the numbers that the operands stand for, in fp32, rounded once."""

        def dequantized(x, units):
            units = units.reshape(1, 1) if units.numel() == 1 else units
            for dim, size in enumerate(x.shape):
                length = {size: 1, 1: size}.get(units.shape[dim], 128)  # that shares a unit
                units = units.repeat_interleave(length, dim).narrow(dim, 0, size)
            return x.float() * units

        acc = torch.matmul(dequantized(a, scale_a), dequantized(b, scale_b))
        return acc.to(out_dtype)

    def _setup(self, backend):
        if not is_backend_available(backend):
            pytest.skip(f"backend {backend} is not available")
        if torch.cuda.is_available() and torch.cuda.get_device_capability() < (9, 0):
            pytest.skip("products of 8-bit floats need compute capability 9.0")
        set_backend(backend)
        self.setUp()

    def _check(self, kwargs, **options):
        dtype = next(iter(kwargs.values())).dtype
        tolerances = self._tolerances.get(dtype, {})
        self.assertCorrectness(scaled_matmul, self.reference, kwargs, **tolerances, **options)

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
        name = "scale_a"
        kwargs[name] = kwargs[name] * 100
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        expected = scaled_matmul(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert scaled_matmul(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            scaled_matmul(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            scaled_matmul(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            scaled_matmul(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            scaled_matmul(**kwargs, unknown=1)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", [(1, 37, 50, "rows"), (70, 37, 50, "rows"), (1, 301, 2200, "blocks")], ids=str)
    def test_op_out_in_wider_rows(self, shape, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, dtype)
        expected = scaled_matmul(**kwargs)
        *leading, size = expected.shape
        memory = expected.new_full((*leading, size // 16 * 16 + 32), 7)
        scaled_matmul(**kwargs, out=memory[..., :size])
        assert torch.equal(memory[..., :size], expected)
        assert memory[..., size:].eq(7).all()

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("size", [(130, 200, 300), (9, 140, 3000)], ids=str)
    @pytest.mark.parametrize("case", ["rows", "blocks"])
    def test_op_exact(self, size, case, backend):
        self._setup(backend)
        kwargs = self.inputs((*size, case), self._dtypes[0])
        for name in ("a", "b"):  # whole numbers whose products and sums have few bits
            kwargs[name] = torch.randint(-4, 5, kwargs[name].shape, device="cuda").to(self._dtypes[0])
        for name in ("scale_a", "scale_b"):
            kwargs[name] = 2.0 ** torch.randint(-3, 4, kwargs[name].shape, device="cuda")
        kwargs["out_dtype"] = torch.float32
        actual = scaled_matmul(**kwargs)
        torch.testing.assert_close(actual, self.reference(**kwargs))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(), (1,), (1, 1)], ids=str)
    @pytest.mark.parametrize("names", [("scale_a",), ("scale_b",), ("scale_a", "scale_b")], ids=str)
    def test_op_one_scale(self, names, shape, backend):
        self._setup(backend)
        kwargs = self.inputs((70, 90, 200, "rows"), self._dtypes[0])
        for name in names:
            kwargs[name] = kwargs[name].flatten()[3].reshape(shape)
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(70, 300, 300, "blocks"), (200, 96, 160, "rows")], ids=str)
    def test_op_contiguous_b(self, shape, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[0])
        kwargs["b"] = kwargs["b"].contiguous()
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_scales_by_columns(self, backend):
        self._setup(backend)
        kwargs = self.inputs((130, 300, 300, "blocks"), self._dtypes[0])
        expected = scaled_matmul(**kwargs)
        kwargs["scale_a"] = kwargs["scale_a"].mT.contiguous().mT
        assert torch.equal(scaled_matmul(**kwargs), expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("name", ["a", "b", "scale_a", "scale_b"])
    @pytest.mark.parametrize("case", ["rows", "blocks"])
    def test_op_nan(self, case, name, backend):
        self._setup(backend)
        kwargs = self.inputs((131, 267, 300, case), self._dtypes[0])
        kwargs[name][-1, -1] = float("nan")
        self._check(kwargs, equal_nan=True)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("case", ["rows", "blocks"])
    def test_op_strided_out(self, case, backend):
        self._setup(backend)
        kwargs = self.inputs((129, 257, 200, case), self._dtypes[0])
        expected = scaled_matmul(**kwargs)
        out = expected.new_empty(expected.mT.shape).mT
        scaled_matmul(**kwargs, out=out)
        assert torch.equal(out, expected)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_shares_memory(self, backend):
        self._setup(backend)
        kwargs = self.inputs((160, 160, 320, "rows"), self._dtypes[0])
        expected = scaled_matmul(**kwargs)
        out = kwargs["a"].view(torch.bfloat16)
        scaled_matmul(**kwargs, out=out)
        assert torch.equal(out, expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("case", ["rows", "blocks"])
    def test_op_shapes_that_do_not_fit(self, case, backend):
        self._setup(backend)
        kwargs = self.inputs((16, 257, 260, case), self._dtypes[0])
        for name in ("a", "b", "scale_a", "scale_b"):
            x = kwargs[name]
            for wrong in (x[1:], x[..., 1:], x.expand(2, *x.shape)):
                with pytest.raises(ValueError, match="has shape"):
                    scaled_matmul(**{**kwargs, name: wrong})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_dtypes_that_do_not_fit(self, backend):
        self._setup(backend)
        kwargs = self.inputs((16, 32, 64, "rows"), self._dtypes[0])
        for name in ("b", "scale_a", "scale_b"):
            wrong = kwargs[name].to(torch.float64)
            with pytest.raises(TypeError, match=f"^{name} is torch.float64"):
                scaled_matmul(**{**kwargs, name: wrong})
        with pytest.raises(TypeError, match=r"^out_dtype is torch\.float64"):
            scaled_matmul(**kwargs, out_dtype=torch.float64)
        wrong = torch.empty((16, 32), dtype=torch.float16, device="cuda")
        with pytest.raises(ValueError, match=r"^out is .* of torch\.float16"):
            scaled_matmul(**kwargs, out=wrong)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_needs_a_newer_gpu(self, backend, monkeypatch):
        self._setup(backend)
        kwargs = self.inputs((16, 32, 64, "rows"), self._dtypes[0])
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (8, 9))
        with pytest.raises(NotImplementedError, match=r"need compute capability 9\.0; the GPU has 8\.9"):
            scaled_matmul(**kwargs)
