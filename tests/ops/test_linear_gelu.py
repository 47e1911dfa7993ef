"""Tests of linear_gelu against PyTorch."""

import pytest
import torch

from reference_ops import linear_gelu
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_LinearGelu(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    # (..., M, N, K)
    _aligned = [(4096, 2560, 64), (256, 384, 512), (3, 128, 256, 64)]
    _ragged = [(131, 67, 37), (1, 1, 1), (5, 1021, 257), (7, 50, 2051), (2, 3, 33, 65, 129)]
    _empty = [(0, 5, 7), (5, 0, 7), (5, 7, 0), (0, 3, 5, 7)]
    _huge = (2**17 + 1, 2**14 + 8, 16)
    _arguments = []
    _tolerances = {
        torch.float32: {"rtol": 1e-5, "atol": 1e-4},
    }

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        *batch, m, n, k = shape
        scale = max(k, 1) ** -0.25  # results are around 1

        def random(*size):
            return scale * torch.randn(size, dtype=dtype, device=device)

        return {
            "x": random(*batch, m, k),
            "weight": random(n, k),
            "bias": random(n),
        }

    @staticmethod
    def reference(
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The same in fp32, for fp32 in fp64, rounded once."""
        wide = torch.float64 if x.element_size() > 2 else torch.float32
        acc = torch.matmul(x.to(wide), weight.to(wide).mT)
        acc = acc + bias.to(wide)
        acc = acc.double()  # fp32's gelu of inf is NaN on a CPU
        return (torch.nn.functional.gelu(acc)).to(x.dtype)

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
        self.assertCorrectness(linear_gelu, self.reference, kwargs, **tolerances, **options)

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
        expected = linear_gelu(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert linear_gelu(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            linear_gelu(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            linear_gelu(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            linear_gelu(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            linear_gelu(**kwargs, unknown=1)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", [(1, 37, 50), (70, 37, 50), (1, 37, 2051), (2, 1, 37, 20)], ids=str)
    def test_op_out_in_wider_rows(self, shape, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, dtype)
        expected = linear_gelu(**kwargs)
        *leading, size = expected.shape
        memory = expected.new_full((*leading, size // 16 * 16 + 32), 7)
        linear_gelu(**kwargs, out=memory[..., :size])
        assert torch.equal(memory[..., :size], expected)
        assert memory[..., size:].eq(7).all()

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(129, 257, 65), (2, 3, 64, 96, 40)], ids=str)
    def test_op_strided_out(self, shape, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[0])
        expected = linear_gelu(**kwargs)
        out = expected.new_empty(expected.mT.shape).mT
        linear_gelu(**kwargs, out=out)
        assert torch.equal(out, expected)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_is_an_operand(self, backend):
        self._setup(backend)
        kwargs = self.inputs((160, 160, 160), self._dtypes[0])
        expected = linear_gelu(**kwargs)
        linear_gelu(**kwargs, out=kwargs["x"])
        assert torch.equal(kwargs["x"], expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("name", ["x", "weight"])
    def test_op_equal_rows(self, name, backend):
        self._setup(backend)
        kwargs = self.inputs((48, 80, 64), self._dtypes[0])
        kwargs[name] = kwargs[name][:1].expand_as(kwargs[name])
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("name", ["weight", "bias"])
    def test_op_shapes_that_do_not_fit(self, name, backend):
        self._setup(backend)
        kwargs = self.inputs((16, 32, 64), self._dtypes[0])
        repeats = kwargs[name].expand(2, 2, *kwargs[name].shape)
        for wrong in (kwargs[name][..., 1:], repeats, kwargs[name].flatten()[0]):
            with pytest.raises(ValueError, match=f"{name} has shape"):
                linear_gelu(**{**kwargs, name: wrong})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_dtypes_that_differ(self, backend):
        self._setup(backend)
        kwargs = self.inputs((16, 32, 64), self._dtypes[0])
        kwargs["weight"] = kwargs["weight"].to(torch.int32)
        with pytest.raises(TypeError, match="weight"):
            linear_gelu(**kwargs)
