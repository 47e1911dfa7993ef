"""Tests of dropout against PyTorch."""

import pytest
import torch

from reference_ops import dropout
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Dropout(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(64, 1024), (4, 8, 256)]
    _ragged = [(7, 1021), (3, 5, 17), (300, 57), (1,)]
    _empty = [(0,), (3, 0)]
    _huge = (2**19 + 1, 4096)
    _arguments = [{"p": 0.1}, {"p": 0.0}, {"p": 1.0}, {"training": False}, {"seed": 2**40 + 3}, {"seed": -1}]
    _tolerances = {}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        return {"x": torch.randn(shape, dtype=dtype, device=device), "seed": 5}

    @staticmethod
    def reference(
        x: torch.Tensor,
        seed: int,
        p: float = 0.5,
        training: bool = True,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Dropout by Philox 4x32 with seven rounds, its words in runs of 1024 elements."""
        if not training:
            return x.clone()
        scale = 1 / (1 - p) if p < 1 else 0.0
        results = []
        for start, values in enumerate(x.flatten().split(2**26)):  # one after the other, for the memory they take
            index = start * 2**26 + torch.arange(values.numel(), device=x.device)
            counter = index // 4096 * 1024 + index % 1024
            a, b = counter & 0xFFFFFFFF, counter >> 32
            c = d = torch.zeros_like(a)
            low, high = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
            for _ in range(7):
                # 64-bit products from halves, because int64 is signed
                halves = [(n >> 16, n & 0xFFFF, factor) for n, factor in ((a, 0xD2511F53), (c, 0xCD9E8D57))]
                products = [(upper * factor, lower * factor) for upper, lower, factor in halves]
                (top, bottom), (other, rest) = [
                    ((upper + (lower >> 16)) >> 16, (lower + ((upper & 0xFFFF) << 16)) & 0xFFFFFFFF)
                    for upper, lower in products
                ]
                a, b, c, d = other ^ b ^ low, rest, top ^ d ^ high, bottom
                low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
            word = torch.stack([a, b, c, d]).gather(0, index[None] // 1024 % 4)[0]
            kept = word >= min(int(p * 2**32), 2**32 - 1)
            results.append((values.float() * torch.where(kept, scale, 0.0)).to(x.dtype))
        return torch.cat(results).reshape(x.shape)

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
        self.assertCorrectness(dropout, self.reference, kwargs, **tolerances, **options)

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
        expected = dropout(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert dropout(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            dropout(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            dropout(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            dropout(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            dropout(**kwargs, unknown=1)

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
    def test_op_known_answers(self, backend):
        self._setup(backend)
        x = torch.ones(4096, dtype=self._dtypes[0], device="cuda")
        # The first four words of Philox 4x32 with seven rounds and key zero, from the tests of its authors
        for position, expected in [(0, 0x5F6FB709), (1024, 0x0D893F64), (2048, 0x4F121F81), (3072, 0x4F730A48)]:
            actual = dropout(x, seed=0, p=expected / 2**32)
            assert actual[position] > 0
            actual = dropout(x, seed=0, p=(expected + 1) / 2**32)
            assert actual[position] == 0

    @pytest.mark.parametrize("backend", _backends)
    def test_op_depends_on_seed_alone(self, backend):
        self._setup(backend)
        x = torch.ones(50000, dtype=self._dtypes[0], device="cuda")
        expected = dropout(x, 1)
        wrong = dropout(x, 2)
        assert torch.equal(dropout(x, 1), expected)
        # Two independent draws agree where both keep or both drop: half of the elements
        assert 0.48 < (wrong == expected).float().mean().item() < 0.52

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("expected", [0.1, 0.5, 0.9], ids=str)
    def test_op_share_of_dropped_elements(self, expected, backend):
        self._setup(backend)
        x = torch.ones(200000, dtype=self._dtypes[0], device="cuda")
        result = dropout(x, seed=7, p=expected)
        # Five standard deviations of a binomial share
        error = 5 * (expected * (1 - expected) / x.numel()) ** 0.5
        assert expected - error < (result == 0).float().mean().item() < expected + error
        torch.testing.assert_close(result.max(), x[0] / (1 - expected), rtol=1e-2, atol=0)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_in_place_and_strided(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 5, 34), self._dtypes[0])
        expected = dropout(**kwargs)
        strided = expected.new_empty(expected.mT.shape).mT
        dropout(**kwargs, out=strided)
        dropout(**kwargs, out=kwargs["x"])
        assert torch.equal(strided, expected)
        assert torch.equal(kwargs["x"], expected)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_overlapping(self, backend):
        self._setup(backend)
        memory = torch.randn(20001, dtype=self._dtypes[0], device="cuda")
        x, out = memory[:20000], memory[1:]
        expected = dropout(x, seed=5)
        dropout(x, seed=5, out=out)
        assert torch.equal(out, expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("name", "wrong", "error"), [("p", 1.5, ValueError), ("seed", 0.5, TypeError)])
    def test_op_bad_argument(self, name, wrong, error, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        with pytest.raises(error, match=f"^{name} is "):
            dropout(**{**kwargs, name: wrong})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_with_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        kwargs["x"].requires_grad_()
        with pytest.raises(ValueError, match="out"):
            dropout(**kwargs, out=torch.empty_like(kwargs["x"]))
