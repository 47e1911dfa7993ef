"""Tests of attention_decode against PyTorch."""

import pytest
import torch

from reference_ops import attention_decode
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_AttentionDecode(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    # (B, H, HK, M, N, D): heads of queries and of keys, queries, keys, elements of each
    _aligned = [(2, 8, 1, 1, 256, 64), (1, 4, 4, 1, 128, 128), (1, 4, 2, 1, 1024, 64)]
    _ragged = [(2, 6, 2, 3, 77, 24), (1, 1, 1, 1, 1, 1), (1, 40, 2, 4, 601, 37), (1, 2, 1, 1, 70, 256)]
    _ragged += [(1, 2, 1, 1, 5003, 24)]  # in more parts than are combined at once
    _empty = [(0, 2, 1, 1, 5, 16), (2, 0, 0, 1, 5, 16), (1, 2, 1, 0, 5, 16), (1, 2, 1, 1, 0, 16), (1, 2, 1, 1, 5, 0)]
    _huge = (2, 8, 8, 1, 2**20 + 1, 128)
    _arguments = [{"window": 5}, {"softcap": 2.5}, {"scale": 0.5, "window": 40}, {"lengths": None}]
    _tolerances = {torch.float32: {"rtol": 1e-5, "atol": 1e-4}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        batch, heads, key_heads, m, n, d = shape
        return {
            "q": torch.randn((batch, heads, m, d), dtype=dtype, device=device),
            "k": torch.randn((batch, key_heads, n, d), dtype=dtype, device=device),
            "v": torch.randn((batch, key_heads, n, d), dtype=dtype, device=device),
            "lengths": torch.randint((n + 1) // 2, n + 1, (batch,), dtype=torch.int32, device=device),
        }

    @staticmethod
    def reference(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        lengths: torch.Tensor | None = None,
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
        ends = torch.full(q.shape[:1], n, device=q.device) if lengths is None else lengths
        places = ends[:, None] + torch.arange(-m, 0, device=q.device)  # of the key that belongs to each query
        behind = (places[:, :, None] - torch.arange(n, device=q.device))[:, None]
        seen = (behind >= 0) & (behind < (window or n + m))
        blind = ~seen.any(-1, keepdim=True)  # queries that see no key
        weights = torch.softmax(scores.masked_fill(~seen & ~blind, -torch.inf), -1).masked_fill(blind, 0.0)
        v = v.masked_fill(torch.arange(n, device=q.device)[:, None] >= ends[:, None, None, None], 0.0)
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
        self.assertCorrectness(attention_decode, self.reference, kwargs, **tolerances, **options)

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
        expected = attention_decode(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert attention_decode(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            attention_decode(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            attention_decode(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            attention_decode(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            attention_decode(**kwargs, unknown=1)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", [(1, 1, 1, 1, 70, 37), (2, 6, 2, 3, 77, 37)], ids=str)
    def test_op_out_in_wider_rows(self, shape, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, dtype)
        expected = attention_decode(**kwargs)
        *leading, size = expected.shape
        memory = expected.new_full((*leading, size // 16 * 16 + 32), 7)
        attention_decode(**kwargs, out=memory[..., :size])
        assert torch.equal(memory[..., :size], expected)
        assert memory[..., size:].eq(7).all()

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("arguments", [{"window": None}, {"window": 1}, {"window": 100}], ids=str)
    @pytest.mark.parametrize("shape", [(6, 4, 2, 1, 300, 16), (6, 4, 2, 5, 700, 16)], ids=str)
    def test_op_lengths(self, shape, arguments, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[-1])
        kwargs["lengths"] = torch.tensor([0, 1, 3, 64, 299, 300], device=kwargs["q"].device)
        for name in ("k", "v"):  # what lies beyond the keys of a sequence is never used
            for position, end in enumerate(kwargs["lengths"].tolist()):
                kwargs[name][position, :, end:] = torch.nan
        expected = self.reference(**{**kwargs, "k": kwargs["k"].nan_to_num(0.0)}, **arguments)
        result = attention_decode(**kwargs, **arguments)
        torch.testing.assert_close(result, expected, rtol=1e-2, atol=2e-2)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_lengths_beyond_the_keys(self, backend):
        self._setup(backend)
        kwargs = self.inputs((5, 4, 2, 1, 70, 16), self._dtypes[-1])
        end = torch.tensor([-(2**63), 7 - 2**32, 70, 2**32 + 7, 2**63 - 1], device=kwargs["q"].device)
        expected = self.reference(**{**kwargs, "lengths": end.clamp(0, 70)})
        actual = attention_decode(**{**kwargs, "lengths": end})
        torch.testing.assert_close(actual, expected, rtol=1e-2, atol=2e-2)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_rows_than_a_tile(self, backend):
        self._setup(backend)
        self._check(self.inputs((1, 36, 2, 5, 40, 16), self._dtypes[-1]))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_strided_out_and_in_place(self, backend):
        self._setup(backend)
        kwargs = self.inputs((2, 4, 2, 3, 33, 24), self._dtypes[0])
        expected = attention_decode(**kwargs)
        strided = expected.new_empty((2, 3, 4, 24)).transpose(1, 2)
        attention_decode(**kwargs, out=strided)
        attention_decode(**kwargs, out=kwargs["q"])
        assert torch.equal(strided, expected)
        assert torch.equal(kwargs["q"], expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("name", "shape"), [("q", (2, 3)), ("q", (1, 3, 4, 16)), ("k", (2, 2, 5, 16)), ("v", (1, 2, 6, 16))], ids=str
    )
    def test_op_shapes_that_do_not_fit(self, name, shape, backend):
        self._setup(backend)
        kwargs = self.inputs((1, 4, 2, 4, 5, 16), self._dtypes[0])
        kwargs[name] = kwargs[name].new_zeros(shape)
        with pytest.raises(ValueError, match="has shape"):
            attention_decode(**kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_lengths_that_do_not_fit(self, backend):
        self._setup(backend)
        kwargs = self.inputs((2, 4, 2, 4, 5, 16), self._dtypes[0])
        with pytest.raises(ValueError, match="lengths is "):
            attention_decode(**{**kwargs, "lengths": kwargs["lengths"][:1]})
        kwargs["lengths"] = kwargs["lengths"].float()
        with pytest.raises(TypeError, match="lengths is "):
            attention_decode(**kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("name", "wrong"), [("window", 0), ("window", 1.5), ("softcap", -1.0), ("scale", 0.0)])
    def test_op_bad_option(self, name, wrong, backend):
        self._setup(backend)
        kwargs = {**self.inputs((1, 1, 1, 4, 5, 16), self._dtypes[0]), name: wrong}
        with pytest.raises(ValueError, match=f"^{name} is "):
            attention_decode(**kwargs)
