"""Tests of attention against PyTorch."""

import pytest
import torch

from reference_ops import attention
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Attention(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    # (B, H, HK, M, N, D): heads of queries and of keys, queries, keys, elements of each
    _aligned = [(1, 2, 1, 64, 128, 64), (1, 1, 1, 64, 64, 128)]
    _ragged = [(2, 4, 2, 19, 67, 24), (1, 1, 1, 1, 1, 1), (1, 3, 1, 150, 37, 37), (1, 1, 1, 5, 35, 256)]
    _empty = [(0, 2, 1, 3, 5, 16), (2, 0, 0, 3, 5, 16), (1, 2, 1, 0, 5, 16), (1, 2, 1, 3, 0, 16), (1, 2, 1, 3, 5, 0)]
    _huge = (2, 16, 16, 2**20 + 1, 9, 64)
    _arguments = [
        {"causal": True},
        {"window": 5},
        {"causal": True, "window": 30},
        {"softcap": 2.5},
        {"scale": 0.5, "causal": True, "softcap": 20.0},
    ]
    _tolerances = {torch.float32: {"rtol": 1e-5, "atol": 1e-4}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        batch, heads, key_heads, m, n, d = shape
        return {
            "q": torch.randn((batch, heads, m, d), dtype=dtype, device=device),
            "k": torch.randn((batch, key_heads, n, d), dtype=dtype, device=device),
            "v": torch.randn((batch, key_heads, n, d), dtype=dtype, device=device),
        }

    @staticmethod
    def reference(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        causal: bool = False,
        window: int | None = None,
        softcap: float = 0.0,
        scale: float | None = None,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The same with a matrix of scores, in fp32, for fp32 in fp64, rounded once."""
        wide = torch.float64 if q.element_size() > 2 else torch.float32
        m, n, d = q.shape[2], k.shape[2], q.shape[3]
        k, v = (t.to(wide).repeat_interleave(q.shape[1] // max(k.shape[1], 1), 1) for t in (k, v))
        scores = q.to(wide) @ k.mT * (max(d, 1) ** -0.5 if scale is None else scale)
        if softcap:
            scores = softcap * torch.tanh(scores / softcap)
        ahead = torch.arange(n, device=q.device) - torch.arange(n - m, n, device=q.device)[:, None]
        seen = (ahead <= 0 if causal else ahead < n + m) & (ahead.abs() < (window or n + m))
        blind = ~seen.any(-1, keepdim=True)  # queries that see no key
        weights = torch.softmax(scores.masked_fill(~seen & ~blind, -torch.inf), -1).masked_fill(blind, 0.0)
        return (weights @ v).to(q.dtype)

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
        self.assertCorrectness(attention, self.reference, kwargs, **tolerances, **options)

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
        for x in kwargs.values():
            if isinstance(x, torch.Tensor):
                x.requires_grad_()
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
        expected = attention(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert attention(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            attention(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            attention(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            attention(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            attention(**kwargs, unknown=1)

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
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", [(1, 1, 1, 1, 35, 37), (1, 3, 1, 19, 35, 37)], ids=str)
    def test_op_out_in_wider_rows(self, shape, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, dtype)
        expected = attention(**kwargs)
        *leading, size = expected.shape
        memory = expected.new_full((*leading, size // 16 * 16 + 32), 7)
        attention(**kwargs, out=memory[..., :size])
        assert torch.equal(memory[..., :size], expected)
        assert memory[..., size:].eq(7).all()

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("window", [None, 1, 40], ids=str)
    @pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
    @pytest.mark.parametrize(("m", "n"), [(200, 200), (70, 300), (300, 70)], ids=str)
    def test_op_masks(self, m, n, causal, window, backend):
        self._setup(backend)
        kwargs = self.inputs((1, 2, 1, m, n, 16), self._dtypes[-1])
        for x in kwargs.values():
            x.requires_grad_()
        self._check({**kwargs, "causal": causal, "window": window})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("arguments", [{}, {"causal": True}], ids=str)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    def test_op_gradients_of_scores_far_below_zero(self, dtype, arguments, backend):
        self._setup(backend)
        kwargs = self.inputs((1, 2, 1, 70, 90, 16), dtype)
        # What is behind the last query or key is zeros, with a score of 0 and so a weight of infinity
        values = [x.requires_grad_() for x in (kwargs["q"] + 12.0, kwargs["k"] - 12.0, kwargs["v"])]
        result = attention(*values, **arguments)
        for slopes in torch.autograd.grad(result, values, torch.randn_like(result)):
            assert slopes.isfinite().all()

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("d", "causal"), [(16, False), (80, True)], ids=str)
    def test_op_scores_that_rise(self, d, causal, backend):
        self._setup(backend)
        # So many heads that there is a block for each multiprocessor
        kwargs = self.inputs((1, 132, 66, 9, 300, d), torch.bfloat16)
        # Weights by the maximum of the first keys are infinite in every other head
        kwargs["k"][:, ::2, 200:] *= 60
        kwargs["q"][:, :, 5] = float("nan")  # which hides nothing of the queries beside it
        self._check({**kwargs, "causal": causal}, equal_nan=True)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_queries_that_see_no_key(self, backend):
        self._setup(backend)
        kwargs = self.inputs((1, 2, 1, 40, 8, 16), self._dtypes[0])
        result = attention(**kwargs, causal=True)
        assert not result[:, :, :32].any()
        assert result[:, :, 32:].all()

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    def test_op_lengths_before_heads(self, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs((2, 4, 2, 33, 65, 64), dtype)
        self._check({name: x.transpose(1, 2).contiguous().transpose(1, 2) for name, x in kwargs.items()})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_strided_out_and_in_place(self, backend):
        self._setup(backend)
        kwargs = self.inputs((2, 2, 2, 33, 33, 24), self._dtypes[0])
        expected = attention(**kwargs)
        strided = expected.new_empty((2, 33, 2, 24)).transpose(1, 2)
        attention(**kwargs, out=strided)
        attention(**kwargs, out=kwargs["k"])
        assert torch.equal(strided, expected)
        assert torch.equal(kwargs["k"], expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("name", "shape"), [("q", (2, 3)), ("q", (1, 3, 4, 16)), ("k", (2, 2, 5, 16)), ("v", (1, 2, 6, 16))], ids=str
    )
    def test_op_shapes_that_do_not_fit(self, name, shape, backend):
        self._setup(backend)
        kwargs = self.inputs((1, 4, 2, 4, 5, 16), self._dtypes[0])
        kwargs[name] = kwargs[name].new_zeros(shape)
        with pytest.raises(ValueError, match="has shape"):
            attention(**kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("name", "wrong"), [("window", 0), ("window", 1.5), ("softcap", -1.0), ("scale", 0.0)])
    def test_op_bad_option(self, name, wrong, backend):
        self._setup(backend)
        kwargs = {**self.inputs((1, 1, 1, 4, 5, 16), self._dtypes[0]), name: wrong}
        with pytest.raises(ValueError, match=f"^{name} is "):
            attention(**kwargs)
