"""Tests of pad against PyTorch."""

import pytest
import torch

from reference_ops import pad
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Pad(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(4, 128, 256), (64, 64)]
    _ragged = [(5, 37, 131), (3, 1009), (7, 1), (1, 1)]
    _empty = [(0, 5), (3, 0)]
    _huge = (2, 2**30 + 1)
    _arguments = [
        {"padding": (0, 3, 2, 0, 1, 1), "value": 1},
        {"padding": (-1, 5), "value": float("-inf")},
        {"padding": (0, 0, -3, -30)},
        {"padding": ()},
    ]
    _tolerances = {
        torch.float32: {"rtol": 0, "atol": 0},
        torch.float16: {"rtol": 0, "atol": 0},
        torch.bfloat16: {"rtol": 0, "atol": 0},
    }

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        x = torch.randn(shape, dtype=dtype, device=device)
        return {"x": x, "padding": (1, 2, 0, 1), "value": 7}

    @staticmethod
    def reference(
        x: torch.Tensor,
        padding: tuple[int, ...],
        value: float = 0,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """pad of PyTorch."""
        return torch.nn.functional.pad(x, padding, value=value)

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
        self.assertCorrectness(pad, self.reference, kwargs, **tolerances, **options)

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
        expected = pad(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert pad(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            pad(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            pad(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            pad(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            pad(**kwargs, unknown=1)

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

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(9, 2044), (3, 2045), (3, 2046), (700, 97), (41, 3, 5, 113)], ids=str)
    def test_op_lengths_of_rows(self, shape, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[0])
        expected = self.reference(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 5)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert pad(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.stack((memory[:16], memory[-16:])).eq(5).all()

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_strided_and_overlapping(self, backend):
        self._setup(backend)
        kwargs = self.inputs((150, 150), self._dtypes[0])  # of several tiles, so that one could overwrite another
        expected = pad(**kwargs)
        strided = expected.new_empty(expected.mT.shape).mT
        pad(**kwargs, out=strided)
        assert torch.equal(strided, expected)
        out = torch.empty_like(expected)
        kwargs["x"] = out.view(-1)[: kwargs["x"].numel()].view(150, 150).copy_(kwargs["x"])
        pad(**kwargs, out=out)
        assert torch.equal(out, expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("name", "values", "error"),
        [
            ("padding", (1,), ValueError),
            ("padding", (0, 0, 0, 0, 0, 0), ValueError),
            ("padding", (-3, -3), ValueError),
            ("padding", 1, TypeError),
            ("value", "1", TypeError),
        ],
        ids=str,
    )
    def test_op_bad_arguments(self, name, values, error, backend):
        self._setup(backend)
        kwargs = self.inputs((2, 3), self._dtypes[0])
        with pytest.raises(error, match=f"^{name} is "):
            pad(**{**kwargs, name: values})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_scalar(self, backend):
        self._setup(backend)
        x = self.inputs((), self._dtypes[0])["x"]
        self._check({"x": x, "padding": (), "value": 0})
