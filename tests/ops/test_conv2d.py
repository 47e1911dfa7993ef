"""Tests of conv2d against PyTorch."""

import pytest
import torch

from reference_ops import conv2d
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Conv2d(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    # (N, C, O, groups, size along each axis, of the filter)
    _aligned = [(2, 32, 64, 1, 10, 3), (1, 96, 128, 1, 8, 1), (1, 3, 64, 1, 14, 7)]
    _ragged = [(2, 37, 21, 1, 7, 3), (1, 1, 1, 1, 1, 1), (1, 24, 36, 3, 6, 3), (1, 19, 19, 19, 7, 3)]
    _empty = [(0, 8, 8, 1, 5, 3)]
    _huge = (5, 64, 8, 1, 2600, 3)
    _arguments = [
        {"stride": 2},
        {"stride": 3, "padding": 1},
        {"padding": (2, 1)},
        {"padding": "same", "dilation": 2},
        {"padding": "valid", "dilation": (1, 3)},
    ]
    _tolerances = {
        torch.float32: {"rtol": 1e-5, "atol": 1e-4},
    }

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        images, channels, out_channels, groups, size, kernel = shape
        terms = channels // groups * kernel**2
        scale = max(terms, 1) ** -0.25  # results are around 1

        def random(*size):
            return scale * torch.randn(size, dtype=dtype, device=device)

        return {
            "x": random(images, channels, *(size,) * 2),
            "weight": random(out_channels, channels // groups, *(kernel,) * 2),
            "groups": groups,
        }

    @staticmethod
    def reference(
        x: torch.Tensor,
        weight: torch.Tensor,
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The same in fp32, for fp32 in fp64, rounded once."""
        wide = torch.float64 if x.element_size() > 2 else torch.float32
        acc = torch.nn.functional.conv2d(x.to(wide), weight.to(wide), None, stride, padding, dilation, groups)
        return acc.to(x.dtype)

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
        self.assertCorrectness(conv2d, self.reference, kwargs, **tolerances, **options)

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
        expected = conv2d(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert conv2d(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            conv2d(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            conv2d(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            conv2d(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            conv2d(**kwargs, unknown=1)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", [(1, 24, 21, 1, 1, 1), (2, 24, 21, 1, 5, 3)], ids=str)
    def test_op_out_in_wider_rows(self, shape, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, dtype)
        expected = conv2d(**kwargs)
        *leading, size = expected.movedim(1, -1).shape
        memory = expected.new_full((*leading, size // 16 * 16 + 32), 7)
        conv2d(**kwargs, out=memory[..., :size].movedim(-1, 1))
        assert torch.equal(memory[..., :size].movedim(-1, 1), expected)
        assert memory[..., size:].eq(7).all()

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(1, 64, 16, 1, 6, 3), (1, 16, 16, 16, 6, 3)], ids=str)
    def test_op_channels_last(self, shape, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[-1])
        for name in ("x", "weight"):
            kwargs[name] = kwargs[name].movedim(1, -1).contiguous().movedim(-1, 1)
        self._check(kwargs, check_stride=False)
        result = conv2d(**kwargs)
        assert result.movedim(1, -1).is_contiguous()
        out = torch.empty_like(result)
        assert torch.equal(conv2d(**kwargs, out=out), result)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("groups", [1, 4, 16])
    @pytest.mark.parametrize("arguments", [{"stride": 2, "padding": 1}, {"padding": 2, "dilation": 2}], ids=str)
    def test_op_groups(self, arguments, groups, backend):
        self._setup(backend)
        kwargs = self.inputs((2, 16, 16, groups, 7, 3), self._dtypes[-1])
        self._check({**kwargs, **arguments}, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("size", [(3, 3), (3, 1), (2, 3), (2, 2)], ids=str)
    @pytest.mark.parametrize("arguments", [{"padding": (1, 2)}, {"stride": (1, 2)}, {"dilation": (1, 2)}], ids=str)
    def test_op_depthwise(self, arguments, size, backend):
        self._setup(backend)
        kwargs = {**self.inputs((2, 19, 19, 19, 17, 3), self._dtypes[-1]), **arguments}
        kwargs["x"] = kwargs["x"].movedim(1, -1).contiguous().movedim(-1, 1)
        kwargs["weight"] = kwargs["weight"][..., : size[0], : size[1]]
        self._check(kwargs, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("size", [8, 11])
    @pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 1, 1), (2, 1, 1), (1, 2, 2)])
    def test_op_channels_last_with_padding(self, stride, padding, dilation, size, backend):
        self._setup(backend)
        kwargs = self.inputs((2, 32, 16, 1, size, 3), self._dtypes[-1])
        kwargs["x"] = kwargs["x"].movedim(1, -1).contiguous().movedim(-1, 1)
        kwargs.update(stride=stride, padding=padding, dilation=dilation)
        self._check(kwargs, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_some_of_the_channels(self, backend):
        self._setup(backend)
        kwargs = self.inputs((2, 16, 16, 1, 9, 3), self._dtypes[-1])
        kwargs["x"] = kwargs["x"].movedim(1, -1).contiguous().movedim(-1, 1)[:, :8]
        kwargs["weight"] = kwargs["weight"][:, :8]
        self._check(kwargs, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        "arguments",
        [
            {"padding": 1},
            {"padding": 1, "stride": 2},
            {"padding": 2, "dilation": 2},
            {"padding": 3, "stride": 2, "dilation": 3},
            {"padding": 5, "stride": 16},
        ],
        ids=str,
    )
    @pytest.mark.parametrize(
        "shape",
        [
            (3, 80, 8, 1, 11, 3),
            (2, 64, 72, 1, 12, 3),
            (2, 8, 16, 1, 16, 2),
            (2, 128, 24, 2, 9, 3),
            (2, 72, 72, 72, 13, 3),
            (1, 16, 16, 16, 20, 5),
        ],
        ids=str,
    )
    def test_op_channels_first(self, shape, arguments, backend):
        self._setup(backend)
        self._check({**self.inputs(shape, self._dtypes[-1]), **arguments})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("groups", [1, 72])
    def test_op_images_apart(self, groups, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs((2, 72, 72, groups, 9, 3), dtype)
        expected = conv2d(**kwargs)
        kwargs["x"] = torch.stack((kwargs["x"], kwargs["x"] + 1), dim=1)[:, 0]
        out = torch.full_like(torch.stack((expected, expected), dim=1), 7)
        conv2d(**kwargs, out=out[:, 0])
        assert torch.equal(out[:, 0], expected)
        assert out[:, 1].eq(7).all()
        # A stride that is never used
        kwargs["x"] = kwargs["x"].as_strided((1, *kwargs["x"].shape[1:]), (2**33, *kwargs["x"].stride()[1:]))
        torch.testing.assert_close(conv2d(**kwargs), expected[:1])

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_is_x(self, backend):
        self._setup(backend)
        kwargs = self.inputs((2, 16, 16, 1, 9, 1), self._dtypes[0])
        expected = conv2d(**kwargs)
        conv2d(**kwargs, out=kwargs["x"])
        assert torch.equal(kwargs["x"], expected)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_shapes_that_do_not_fit(self, backend):
        self._setup(backend)
        kwargs = self.inputs((2, 6, 8, 2, 9, 3), self._dtypes[0])
        for name in ["weight"]:
            with pytest.raises(ValueError, match=f"{name} has shape"):
                conv2d(**{**kwargs, name: kwargs[name][1:]})
        for name, wrong in [("x", kwargs["x"][0]), ("groups", 4), ("stride", 0), ("padding", -1), ("padding", "full")]:
            with pytest.raises(ValueError, match=f"{name} (is|has)"):
                conv2d(**{**kwargs, name: wrong})
        with pytest.raises(ValueError, match="weight has"):
            conv2d(**kwargs, dilation=5)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_dtypes_that_differ(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        kwargs["weight"] = kwargs["weight"].to(torch.int32)
        with pytest.raises(TypeError, match="weight"):
            conv2d(**kwargs)
