"""Tests of lstm_cell against PyTorch."""

import pytest
import torch

from reference_ops import lstm_cell
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


def _joined(fn):
    """The function with its results in one tensor, so that they and their gradients are compared together."""
    return lambda **kwargs: torch.stack(fn(**kwargs))


class Test_LstmCell(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    # (..., I, H): rows, elements of the input, units
    _aligned = [(256, 128, 64), (2, 64, 64, 256)]
    _ragged = [(5, 3, 67, 33), (1, 1, 1), (150, 9, 130), (7, 5)]
    _empty = [(0, 5, 7), (3, 0, 7), (3, 5, 0)]
    _huge = (2, 2**16 + 8, 2**13 + 8)
    _arguments = []
    _tolerances = {torch.float32: {"rtol": 1e-5, "atol": 1e-5}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        *rows, i, h = shape
        scale = max(i + h, 1) ** -0.5  # sums are around 1
        return {
            "x": torch.randn((*rows, i), dtype=dtype, device=device),
            "h": torch.randn((*rows, h), dtype=dtype, device=device),
            "c": torch.randn((*rows, h), dtype=dtype, device=device),
            "w_ih": scale * torch.randn((4 * h, i), dtype=dtype, device=device),
            "w_hh": scale * torch.randn((4 * h, h), dtype=dtype, device=device),
            "b_ih": torch.randn(4 * h, dtype=dtype, device=device),
            "b_hh": torch.randn(4 * h, dtype=dtype, device=device),
        }

    @staticmethod
    def reference(
        x: torch.Tensor,
        h: torch.Tensor,
        c: torch.Tensor,
        w_ih: torch.Tensor,
        w_hh: torch.Tensor,
        b_ih: torch.Tensor | None = None,
        b_hh: torch.Tensor | None = None,
        out: tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """lstm_cell of PyTorch, in fp32 or wider and rounded once."""
        wide = torch.float64 if x.dtype == torch.float32 else torch.float32
        biases = [torch.zeros(len(w_ih), device=x.device) if b is None else b for b in (b_ih, b_hh)]
        weights = [t.to(wide) for t in (w_ih, w_hh, *biases)]
        rows, *states = (t.to(wide).reshape(h.shape[:-1].numel(), t.shape[-1]) for t in (x, h, c))
        return tuple(state.to(h.dtype).reshape(h.shape) for state in torch.lstm_cell(rows, states, *weights))

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
            values = torch.stack(self.reference(**kwargs)).detach().float().nan_to_num(0.0, 0.0, 0.0)
            peak = values.abs().max().item() if values.numel() else 1.0
            tolerances = {"rtol": 1e-2, "atol": 2e-2 * min(1.0, peak)}
        self.assertCorrectness(_joined(lstm_cell), _joined(self.reference), kwargs, **tolerances, **options)

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
        expected = lstm_cell(**kwargs)
        memory = [x.new_full((x.numel() + 32,), 7) for x in expected]  # with more on either side
        out = tuple(x[16:-16].view(result.shape) for x, result in zip(memory, expected, strict=True))
        assert lstm_cell(**kwargs, out=out) is out
        assert torch.equal(torch.stack(out), torch.stack(expected))
        assert all(torch.cat((x[:16], x[-16:])).eq(7).all() for x in memory)
        for wrong in (out[1:], (*out[1:], out[0].new_empty((*out[0].shape, 2)))):
            with pytest.raises(ValueError, match="out"):
                lstm_cell(**kwargs, out=wrong)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            lstm_cell(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            lstm_cell(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            lstm_cell(**kwargs, unknown=1)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", [(1, 20, 33), (70, 20, 33)], ids=str)
    def test_op_out_in_wider_rows(self, shape, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, dtype)
        expected = lstm_cell(**kwargs)
        *leading, size = expected[0].shape
        memory = [x.new_full((*leading, size // 16 * 16 + 32), 7) for x in expected]
        lstm_cell(**kwargs, out=tuple(x[..., :size] for x in memory))
        assert all(torch.equal(x[..., :size], result) for x, result in zip(memory, expected, strict=True))
        assert all(x[..., size:].eq(7).all() for x in memory)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("missing", [("b_ih",), ("b_hh",), ("b_ih", "b_hh")], ids=str)
    def test_op_without_bias(self, missing, backend):
        self._setup(backend)
        kwargs = self.inputs((20, 40, 30), self._dtypes[0])
        for name in missing:
            del kwargs[name]
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_steps_in_place(self, backend):
        self._setup(backend)
        kwargs = self.inputs((130, 20, 100), self._dtypes[0])
        expected = {name: kwargs[name].clone() for name in ("h", "c")}
        for _ in range(3):
            expected["h"], expected["c"] = self.reference(**{**kwargs, **expected})
            lstm_cell(**kwargs, out=(kwargs["h"], kwargs["c"]))
        for name in ("h", "c"):
            torch.testing.assert_close(kwargs[name], expected[name], rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_strided_out(self, backend):
        self._setup(backend)
        kwargs = self.inputs((20, 40, 30), self._dtypes[0])
        expected = lstm_cell(**kwargs)
        out = tuple(x.new_empty(x.mT.shape).mT for x in expected)
        lstm_cell(**kwargs, out=out)
        assert torch.equal(torch.stack(out), torch.stack(expected))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("name", ["h", "w_ih", "w_hh", "b_ih", "b_hh", "c"])
    def test_op_mismatch(self, name, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 10, 12), self._dtypes[0])
        for wrong in (kwargs[name][1:], kwargs[name][..., 1:], kwargs[name].flatten()[0]):
            with pytest.raises(ValueError, match=f"{name} has shape"):
                lstm_cell(**{**kwargs, name: wrong})
        wrong = kwargs[name].to(torch.int32)
        with pytest.raises(TypeError, match=name):
            lstm_cell(**{**kwargs, name: wrong})
