"""Tests of swiglu against PyTorch."""

import pytest
import torch

from reference_ops import swiglu
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Swiglu(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(64, 4096), (4, 8, 1024)]
    _ragged = [(7, 1021), (3, 5, 17), (2, 11008), (1,)]
    _empty = [(0, 8), (3, 0)]
    _huge = (2**19 + 1, 4096)
    _arguments = []
    _tolerances = {torch.float32: {"rtol": 1e-5, "atol": 1e-6}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        return {
            "gate": torch.randn(shape, dtype=dtype, device=device),
            "up": torch.randn(shape, dtype=dtype, device=device),
        }

    @staticmethod
    def reference(
        gate: torch.Tensor,
        up: torch.Tensor,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """SiLU of PyTorch times the other half, in fp32 or wider and rounded once."""
        wide = torch.float64 if gate.dtype == torch.float32 else torch.float32
        act = torch.nn.functional.silu(gate.to(wide))
        return (act * up.to(wide)).to(gate.dtype)

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
        self.assertCorrectness(swiglu, self.reference, kwargs, **tolerances, **options)

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
        expected = swiglu(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert swiglu(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            swiglu(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            swiglu(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            swiglu(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            swiglu(**kwargs, unknown=1)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", _aligned + _ragged + _empty, ids=str)
    def test_op_backward(self, shape, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, dtype)
        for x in kwargs.values():
            if isinstance(x, torch.Tensor):
                x.requires_grad_()
        self._check(kwargs)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_mismatch(self, backend):
        self._setup(backend)
        kwargs = self.inputs((7, 34), self._dtypes[0])
        with pytest.raises(ValueError, match="up"):
            swiglu(kwargs["gate"], kwargs["up"][:, :-1])
        with pytest.raises(TypeError, match="up"):
            swiglu(kwargs["gate"], kwargs["up"].to(torch.float64))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_not_contiguous(self, backend):
        self._setup(backend)
        kwargs = self.inputs((7, 34), self._dtypes[0])
        expected = swiglu(**kwargs)
        out = expected.new_empty(expected.mT.shape).mT
        swiglu(**kwargs, out=out)
        assert torch.equal(out, expected)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_many_short_rows(self, backend):
        self._setup(backend)
        self._check(self.inputs((300000, 6), self._dtypes[-1]))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_with_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((7, 34), self._dtypes[0])
        out = torch.empty_like(swiglu(**kwargs))
        next(iter(kwargs.values())).requires_grad_()
        with pytest.raises(ValueError, match="out"):
            swiglu(**kwargs, out=out)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_expanded_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((7, 34), self._dtypes[0])
        expected = {name: x.clone().requires_grad_() for name, x in kwargs.items()}
        for x in kwargs.values():
            x.requires_grad_()
        swiglu(**kwargs).sum().backward()
        self.reference(**expected).sum().backward()
        for name, x in kwargs.items():
            torch.testing.assert_close(x.grad, expected[name].grad, rtol=1e-2, atol=1e-2)
