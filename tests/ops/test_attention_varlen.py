"""Tests of attention_varlen against PyTorch."""

import pytest
import torch

from reference_ops import attention_varlen
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_AttentionVarlen(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _trained = ["q", "k", "v"]  # that have a gradient
    # (queries of each sequence, keys of each, H, HK, D): heads of queries and of keys, elements of each
    _aligned = [((64, 128), (128, 64), 2, 1, 64), ((64,), (64,), 1, 1, 128)]
    _ragged = [
        ((19, 0, 33, 7), (67, 5, 20, 0), 4, 2, 24),
        ((1,), (1,), 1, 1, 1),
        ((150, 3), (37, 90), 3, 1, 37),
        ((5, 2), (35, 70), 1, 1, 256),
    ]
    _empty = [
        ((0, 0), (0, 0), 2, 1, 16),
        ((0, 0), (5, 3), 2, 1, 16),
        ((3, 2), (0, 0), 2, 1, 16),
        ((3, 2), (5, 1), 0, 0, 16),
        ((3, 2), (5, 1), 2, 1, 0),
    ]
    _huge = ((2**21, 64), (9, 70), 16, 16, 64)
    _arguments = [
        {"causal": True, "max_seqlen_k": 70},
        {"window": 5, "max_seqlen_q": 500},
        {"causal": True, "window": 30},
        {"softcap": 2.5},
        {"scale": 0.5, "causal": True, "softcap": 20.0},
    ]
    _tolerances = {torch.float32: {"rtol": 1e-5, "atol": 1e-4}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        queries, keys, heads, key_heads, d = shape
        starts = [torch.tensor((0, *lengths)).cumsum(0).int() for lengths in (queries, keys)]
        m, n = (int(x[-1]) for x in starts)
        return {
            "q": torch.randn((m, heads, d), dtype=dtype, device=device),
            "k": torch.randn((n, key_heads, d), dtype=dtype, device=device),
            "v": torch.randn((n, key_heads, d), dtype=dtype, device=device),
            "cu_seqlens_q": starts[0].to(device),
            "cu_seqlens_k": starts[1].to(device),
            "max_seqlen_q": max(queries),
        }

    @staticmethod
    def reference(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        cu_seqlens_q: torch.Tensor,
        cu_seqlens_k: torch.Tensor,
        max_seqlen_q: int,
        max_seqlen_k: int | None = None,
        causal: bool = False,
        window: int | None = None,
        softcap: float = 0.0,
        scale: float | None = None,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The same for one sequence after another with a matrix of scores, in fp32, for fp32 in fp64, rounded once."""
        wide = torch.float64 if q.element_size() > 2 else torch.float32
        starts = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
        y = torch.zeros_like(q, dtype=wide, memory_format=torch.contiguous_format)
        for position in range(len(cu_seqlens_q) - 1):
            rows, columns = (slice(*ends[position : position + 2]) for ends in starts)
            tq, tk, tv = (t.to(wide).transpose(0, 1) for t in (q[rows], k[columns], v[columns]))
            tk, tv = (t.repeat_interleave(q.shape[1] // max(k.shape[1], 1), 0) for t in (tk, tv))
            m, n, d = tq.shape[1], tk.shape[1], q.shape[2]
            scores = tq @ tk.mT * (max(d, 1) ** -0.5 if scale is None else scale)
            if softcap:
                scores = softcap * torch.tanh(scores / softcap)
            ahead = torch.arange(n, device=q.device) - torch.arange(n - m, n, device=q.device)[:, None]
            seen = (ahead <= 0 if causal else ahead < n + m) & (ahead.abs() < (window or n + m))
            blind = ~seen.any(-1, keepdim=True)  # queries that see no key
            weights = torch.softmax(scores.masked_fill(~seen & ~blind, -torch.inf), -1).masked_fill(blind, 0.0)
            y[rows] = (weights @ tv).transpose(0, 1)
        return y.to(q.dtype)

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
        self.assertCorrectness(attention_varlen, self.reference, kwargs, **tolerances, **options)

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
        for x in (kwargs[name] for name in self._trained):
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
        expected = attention_varlen(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert attention_varlen(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            attention_varlen(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            attention_varlen(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            attention_varlen(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            attention_varlen(**kwargs, unknown=1)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", _aligned + _ragged + _empty, ids=str)
    def test_op_backward(self, shape, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, dtype)
        for x in (kwargs[name] for name in self._trained):
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
    @pytest.mark.parametrize("window", [None, 1, 40], ids=str)
    @pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
    def test_op_masks(self, causal, window, backend):
        self._setup(backend)
        kwargs = self.inputs(((70, 33, 130, 1), (70, 130, 33, 9), 2, 1, 16), self._dtypes[-1])
        for name in self._trained:
            kwargs[name].requires_grad_()
        self._check({**kwargs, "causal": causal, "window": window})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("arguments", [{}, {"causal": True}], ids=str)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    def test_op_gradients_of_scores_far_below_zero(self, dtype, arguments, backend):
        self._setup(backend)
        kwargs = self.inputs(((70, 33), (90, 35), 2, 1, 16), dtype)
        # What is behind the last query or key is zeros, with a score of 0 and so a weight of infinity
        kwargs.update(q=kwargs["q"] + 12.0, k=kwargs["k"] - 12.0)
        values = [kwargs[name].requires_grad_() for name in self._trained]
        result = attention_varlen(**kwargs, **arguments)
        for slopes in torch.autograd.grad(result, values, torch.randn_like(result)):
            assert slopes.isfinite().all()

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
    def test_op_scores_that_rise(self, causal, backend):
        self._setup(backend)
        # So many heads that there is a block for each multiprocessor
        kwargs = self.inputs(((9,), (300,), 132, 66, 16), torch.bfloat16)
        # Weights by the maximum of the first keys are infinite in every other head
        kwargs["k"][200:, ::2] *= 60
        kwargs["q"][5] = float("nan")  # which hides nothing of the queries beside it
        self._check({**kwargs, "causal": causal}, equal_nan=True)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_queries_that_see_no_key(self, backend):
        self._setup(backend)
        kwargs = self.inputs(((40, 3), (8, 0), 2, 1, 16), self._dtypes[0])
        result = attention_varlen(**kwargs, causal=True)
        assert not result[:32].any()
        assert result[32:40].all()
        assert not result[40:].any()

    @pytest.mark.parametrize("backend", _backends)
    def test_op_no_sequence(self, backend):
        self._setup(backend)
        kwargs = {**self.inputs(((0,), (0,), 2, 1, 16), self._dtypes[0])}
        kwargs.update(cu_seqlens_q=kwargs["cu_seqlens_q"][:1], cu_seqlens_k=kwargs["cu_seqlens_k"][:1])
        assert attention_varlen(**kwargs).shape == (0, 2, 16)

    def _alone(self, kwargs, **tensors):
        """The tensors with NaN in the rows of all sequences but the second, and where the rows of that one are."""
        places = {}
        for name, x in tensors.items():
            places[name] = slice(*kwargs["cu_seqlens_k" if name in ("k", "v") else "cu_seqlens_q"][1:3].tolist())
            tensors[name] = torch.full_like(x, torch.nan)
            tensors[name][places[name]] = x.detach()[places[name]]
        return tensors, places

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("arguments", [{}, {"causal": True}], ids=str)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    def test_op_neighbours(self, dtype, arguments, backend):
        self._setup(backend)
        kwargs = {**self.inputs(((19, 35, 33), (40, 37, 20), 2, 1, 24), dtype), **arguments}
        expected = attention_varlen(**kwargs)
        values, position = self._alone(kwargs, q=kwargs["q"], k=kwargs["k"], v=kwargs["v"])
        result = attention_varlen(**{**kwargs, **values})
        assert torch.equal(result[position["q"]], expected[position["q"]])

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    def test_op_gradients_of_neighbours(self, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(((19, 35, 33), (40, 37, 20), 2, 1, 24), dtype)
        gradient = torch.randn_like(kwargs["q"])
        values, position = self._alone(kwargs, q=kwargs["q"], k=kwargs["k"], v=kwargs["v"], gradient=gradient)
        slopes = values.pop("gradient")
        for name, x in values.items():
            kwargs[name].requires_grad_()
            x.requires_grad_()
        attention_varlen(**kwargs).backward(gradient)
        attention_varlen(**{**kwargs, **values}).backward(slopes)
        for name, x in values.items():
            assert torch.equal(x.grad[position[name]], kwargs[name].grad[position[name]])

    @pytest.mark.parametrize("backend", _backends)
    def test_op_rows_of_no_sequence(self, backend):
        self._setup(backend)
        kwargs = self.inputs(((3, 19, 40, 5), (4, 33, 70, 9), 4, 2, 24), self._dtypes[0])
        expected = attention_varlen(**kwargs)
        kwargs.update(cu_seqlens_q=kwargs["cu_seqlens_q"][1:-1], cu_seqlens_k=kwargs["cu_seqlens_k"][1:-1])
        kwargs["out"] = torch.full_like(expected, 7.0)
        result = attention_varlen(**kwargs)
        assert torch.equal(result[3:62], expected[3:62])
        assert (result[:3] == 7.0).all()
        assert (result[62:] == 7.0).all()

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    def test_op_heads_before_rows(self, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(((33, 4), (65, 70), 4, 2, 64), dtype)
        for name in ("q", "k", "v"):
            kwargs[name] = kwargs[name].transpose(0, 1).contiguous().transpose(0, 1)
        self._check(kwargs, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_strided_out_and_in_place(self, backend):
        self._setup(backend)
        kwargs = self.inputs(((33, 20), (33, 20), 2, 2, 24), self._dtypes[0])
        expected = attention_varlen(**kwargs)
        strided = expected.new_empty((2, 53, 24)).transpose(0, 1)
        attention_varlen(**kwargs, out=strided)
        attention_varlen(**kwargs, out=kwargs["k"])
        assert torch.equal(strided, expected)
        assert torch.equal(kwargs["k"], expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("name", "shape"), [("q", (2, 3)), ("q", (7, 3, 16)), ("k", (9, 2, 8)), ("v", (8, 2, 16))], ids=str
    )
    def test_op_shapes_that_do_not_fit(self, name, shape, backend):
        self._setup(backend)
        kwargs = self.inputs(((4, 3), (5, 4), 4, 2, 16), self._dtypes[0])
        kwargs[name] = kwargs[name].new_zeros(shape)
        with pytest.raises(ValueError, match="has shape"):
            attention_varlen(**kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("name", ["cu_seqlens_q", "cu_seqlens_k"])
    def test_op_sequences_that_do_not_fit(self, name, backend):
        self._setup(backend)
        kwargs = self.inputs(((4, 3), (5, 4), 4, 2, 16), self._dtypes[0])
        with pytest.raises(TypeError, match=f"^{name} is "):
            attention_varlen(**{**kwargs, name: kwargs[name].long()})
        with pytest.raises(TypeError, match=f"^{name} is "):
            attention_varlen(**{**kwargs, name: None})
        for wrong in (kwargs[name].cpu(), kwargs[name][None], kwargs[name][:0]):
            with pytest.raises(ValueError, match=f"^{name} is "):
                attention_varlen(**{**kwargs, name: wrong})
        with pytest.raises(ValueError, match="cu_seqlens_k is "):
            attention_varlen(**{**kwargs, name: kwargs[name][:2]})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("name", "wrong"),
        [
            ("max_seqlen_q", -1),
            ("max_seqlen_q", 4.0),
            ("max_seqlen_k", -1),
            ("window", 0),
            ("window", 1.5),
            ("softcap", -1.0),
            ("scale", 0.0),
        ],
    )
    def test_op_bad_option(self, name, wrong, backend):
        self._setup(backend)
        kwargs = {**self.inputs(((4,), (5,), 1, 1, 16), self._dtypes[0]), name: wrong}
        with pytest.raises(ValueError, match=f"^{name} is "):
            attention_varlen(**kwargs)
