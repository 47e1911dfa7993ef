"""Tests of transpose against PyTorch."""

import pytest
import torch

from reference_ops import transpose
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Transpose(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(4, 128, 256), (64, 64)]
    _ragged = [(5, 37, 131), (3, 1009), (7, 1), (1, 1)]
    _empty = [(0, 5), (3, 0)]
    _huge = (2**19 + 1, 4096)
    _arguments = [
        {"dim0": 0, "dim1": 1},
        {"dim0": 0, "dim1": 2},
        {"dim0": 1, "dim1": 1},
    ]
    _tolerances = {
        torch.float32: {"rtol": 0, "atol": 0},
        torch.float16: {"rtol": 0, "atol": 0},
        torch.bfloat16: {"rtol": 0, "atol": 0},
    }

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        x = torch.randn(shape, dtype=dtype, device=device)
        return {"x": x}

    @staticmethod
    def reference(
        x: torch.Tensor,
        dim0: int = -2,
        dim1: int = -1,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """transpose of PyTorch."""
        return x.transpose(dim0, dim1).clone(memory_format=torch.contiguous_format)

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
        self.assertCorrectness(transpose, self.reference, kwargs, **tolerances, **options)

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
        expected = transpose(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert transpose(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            transpose(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            transpose(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            transpose(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            transpose(**kwargs, unknown=1)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 0, 2, 1), (1, 3, 0, 2), (2, 3, 0, 1)], ids=str)
    @pytest.mark.parametrize("shape", [(3, 5, 34, 30), (2, 1, 3, 130), (65, 3, 2, 2)], ids=str)
    def test_op_memory_orders(self, shape, order, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[0])
        kwargs["x"] = kwargs["x"].permute(order)
        self._check(kwargs)
        self._check({**kwargs, "x": kwargs["x"][:, :, 1:]})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_strided_and_overlapping(self, backend):
        self._setup(backend)
        kwargs = self.inputs((150, 150), self._dtypes[0])  # of several tiles, so that one could overwrite another
        expected = transpose(**kwargs)
        strided = expected.new_empty(expected.mT.shape).mT
        transpose(**kwargs, out=strided)
        assert torch.equal(strided, expected)
        out = torch.empty_like(expected)
        kwargs["x"] = out.view(-1)[: kwargs["x"].numel()].view(150, 150).copy_(kwargs["x"])
        transpose(**kwargs, out=out)
        assert torch.equal(out, expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("name", "values", "error"),
        [
            ("dim0", 2, ValueError),
            ("dim1", -3, ValueError),
            ("dim1", 1.0, TypeError),
        ],
        ids=str,
    )
    def test_op_bad_arguments(self, name, values, error, backend):
        self._setup(backend)
        kwargs = self.inputs((2, 3), self._dtypes[0])
        with pytest.raises(error, match=f"^{name} is "):
            transpose(**{**kwargs, name: values})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_scalar(self, backend):
        self._setup(backend)
        x = self.inputs((), self._dtypes[0])["x"]
        self._check({"x": x, "dim0": 0, "dim1": -1})
