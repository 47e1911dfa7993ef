"""Tests of max_pool2d against PyTorch."""

import pytest
import torch

from reference_ops import max_pool2d
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_MaxPool2d(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(2, 4, 32, 64), (8, 16, 16)]
    _ragged = [(2, 3, 35, 67), (5, 1, 7, 5), (11, 9)]
    _empty = [(0, 3, 8, 8)]
    _huge = (2**9 + 1, 2**11, 2**11)
    _arguments = [
        {"kernel_size": 2, "stride": None, "padding": 0},
        {"kernel_size": (3, 2), "stride": (1, 2), "padding": (1, 0)},
        {"kernel_size": 5, "stride": 3, "padding": 2, "ceil_mode": True},
        {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True},
        {"dilation": 2},
        {"kernel_size": (3, 2), "padding": 1, "dilation": (3, 1), "ceil_mode": True},
    ]
    _tolerances = {
        torch.float32: {"rtol": 0, "atol": 0},
        torch.float16: {"rtol": 0, "atol": 0},
        torch.bfloat16: {"rtol": 0, "atol": 0},
    }

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        x = torch.randn(shape, dtype=dtype, device=device)
        return {"x": x, "kernel_size": 3, "stride": 2, "padding": 1}

    @staticmethod
    def reference(
        x: torch.Tensor,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        ceil_mode: bool = False,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """max_pool2d of PyTorch."""
        planes = x.reshape(-1, 1, *x.shape[x.ndim - 2 :])
        y = torch.nn.functional.max_pool2d(planes, kernel_size, stride, padding, dilation, ceil_mode)
        return y.reshape(*x.shape[: x.ndim - 2], *y.shape[2:])

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
        self.assertCorrectness(max_pool2d, self.reference, kwargs, **tolerances, **options)

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
        expected = max_pool2d(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert max_pool2d(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            max_pool2d(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            max_pool2d(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            max_pool2d(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            max_pool2d(**kwargs, unknown=1)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_channels_last(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        kwargs["x"] = kwargs["x"].movedim(1, -1).contiguous().movedim(-1, 1)
        self._check(kwargs, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_window_of_the_whole(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        kwargs.update(kernel_size=tuple(kwargs["x"].shape[-2:]), stride=1, padding=0)
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_windows_without_a_largest_value(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        kwargs["x"].fill_(float("-inf"))
        kwargs["x"].view(-1)[5:9] = float("nan")
        kwargs["x"].view(-1)[50:70] = 0
        self._check(kwargs, equal_nan=True)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_strided_and_overlapping(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        expected = max_pool2d(**kwargs)
        strided = expected.new_empty(expected.mT.shape).mT
        end = kwargs["x"].view(-1)[-expected.numel() :].view(expected.shape)  # overwritten before it is read
        for out in (strided, end):
            max_pool2d(**kwargs, out=out)
            assert torch.equal(out, expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("name", "values", "error"),
        [
            ("kernel_size", 0, ValueError),
            ("kernel_size", (2,) * 3, ValueError),
            ("stride", 0, ValueError),
            ("padding", 2, ValueError),
            ("padding", 1.0, TypeError),
            ("dilation", 0, ValueError),
        ],
        ids=str,
    )
    def test_op_bad_windows(self, name, values, error, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        with pytest.raises(error, match=name):
            max_pool2d(**{**kwargs, name: values})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_nothing_to_pool(self, backend):
        self._setup(backend)
        kwargs = self.inputs((3, 2, 5, 0), self._dtypes[0])
        with pytest.raises(ValueError, match="x has shape"):
            max_pool2d(**{**kwargs, "padding": 0})
