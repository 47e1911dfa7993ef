"""Tests of embedding against PyTorch."""

import pytest
import torch

from reference_ops import embedding
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Embedding(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _trained = ["weight"]  # that have a gradient
    _aligned = [(4, 8, 256), (64, 1024)]
    _ragged = [(5, 37, 131), (3, 1009), (7,), (1, 1)]
    _empty = [(0, 5), (3, 0)]
    _huge = (2**19 + 1, 4096)
    _arguments = [
        {"padding_idx": 0},
        {"padding_idx": -2},
    ]
    _tolerances = {
        torch.float32: {"rtol": 1e-5, "atol": 1e-5},
    }

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        rows = max(shape[0], 1)  # few for many indices: most are repeated
        return {
            "weight": torch.randn((rows, shape[-1]), dtype=dtype, device=device),
            "index": torch.randint(0, rows, shape[:-1], device=device),
        }

    @staticmethod
    def reference(
        index: torch.Tensor,
        weight: torch.Tensor,
        padding_idx: int | None = None,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """embedding of PyTorch, its gradient summed in fp32 or wider and rounded once."""
        if not weight.numel():  # of which the gradient in PyTorch 2.11 reads memory that is not there
            return weight.sum() + weight.new_zeros((*index.shape, weight.shape[1]))
        if weight.element_size() == 2:
            return torch.nn.functional.embedding(index, weight.float(), padding_idx).to(weight.dtype)
        return torch.nn.functional.embedding(index, weight, padding_idx)

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
        self.assertCorrectness(embedding, self.reference, kwargs, **tolerances, **options)

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
        expected = embedding(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert embedding(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            embedding(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            embedding(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            embedding(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            embedding(**kwargs, unknown=1)

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
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    def test_op_index_outside(self, dtype, backend):
        self._setup(backend)
        values = (torch.arange(6 * 34, device="cuda") % 7).to(dtype).view(6, 34)
        position = torch.tensor([2, -1, 6, 2**32 + 1, -(2**63), 5], device="cuda")
        wrong = float("nan")
        expected = torch.full((6, 34), wrong, dtype=dtype, device="cuda")
        expected[0], expected[5] = values[2], values[5]
        values.requires_grad_()
        actual = embedding(position.view(3, 2), values).view(6, 34)
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
        actual.sum().backward()
        assert values.grad[:, 7].tolist() == [0, 0, 1, 0, 0, 1]

    @pytest.mark.parametrize("backend", _backends)
    def test_op_index_of_int32(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        kwargs["index"] = kwargs["index"].int()
        kwargs["weight"].requires_grad_()
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(9, 10007), (5, 4097), (600, 3), (70, 60), (2, 3, 5, 7)], ids=str)
    def test_op_long_and_short_rows(self, shape, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[-1])
        expected = kwargs["weight"].index_select(0, kwargs["index"].flatten()).view(shape)
        assert torch.equal(embedding(**kwargs), expected)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_no_indices(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        kwargs["index"] = kwargs["index"][:0]
        assert embedding(**kwargs).shape == (0, 34)
        # No rows: every index is outside
        kwargs.update(weight=kwargs["weight"][:0], index=torch.tensor([0, 3], device="cuda"))
        assert embedding(**kwargs).shape == (2, 34)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_strided_and_overlapping(self, backend):
        self._setup(backend)
        kwargs = self.inputs((150, 150), self._dtypes[0])  # of several tiles, so that one could overwrite another
        expected = embedding(**kwargs)
        strided = expected.new_empty(expected.mT.shape).mT
        embedding(**kwargs, out=strided)
        assert torch.equal(strided, expected)
        for name in ("weight",):
            out = kwargs[name].clone()
            embedding(**{**kwargs, name: out}, out=out)
            assert torch.equal(out, expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("name", "wrong", "error"),
        [
            ("index", torch.zeros(6), TypeError),
            ("index", torch.zeros(6, dtype=torch.int64), ValueError),
            ("padding_idx", 6, ValueError),
            ("padding_idx", -7, ValueError),
            ("padding_idx", 1.0, TypeError),
        ],
        ids=str,
    )
    def test_op_bad_argument(self, name, wrong, error, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        with pytest.raises(error, match=f"^{name} is "):
            embedding(**{**kwargs, name: wrong})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_bad_shape(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        for wrong in (kwargs["weight"][0], kwargs["weight"][None]):
            with pytest.raises(ValueError, match="weight has shape"):
                embedding(**{**kwargs, "weight": wrong})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_with_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        out = embedding(**kwargs)
        for name in self._trained:
            embedding(**{**kwargs, name: kwargs[name].clone().requires_grad_()})
            with pytest.raises(ValueError, match="out is"):
                embedding(**{**kwargs, name: kwargs[name].clone().requires_grad_()}, out=out)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_expanded_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        for name in self._trained:
            kwargs[name].requires_grad_()
        embedding(**kwargs).sum().backward()
        values = {name: kwargs[name].detach().clone().requires_grad_() for name in self._trained}
        self.reference(**{**kwargs, **values}).sum().backward()
        for name in self._trained:
            assert torch.equal(kwargs[name].grad, values[name].grad)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("size", [1, 5, 330], ids=str)
    @pytest.mark.parametrize("shape", [(256, 40), (257, 1030), (3, 257, 1)], ids=str)
    def test_op_repeated_indices(self, shape, size, dtype, backend):
        self._setup(backend)
        x = torch.randn((300, shape[-1]), dtype=dtype, device="cuda").requires_grad_()
        position = torch.randint(0, size, shape[:-1], device="cuda")  # some are outside of 300, and have no gradient
        gradient = torch.randint(0, 5, shape, device="cuda")
        actual = embedding(position, x, padding_idx=-299)
        actual.backward(gradient.to(dtype))
        # Sums of integers are exact, so that rounding once gives the same in any order
        expected = torch.zeros((330, shape[-1]), dtype=torch.float64, device="cuda")
        expected.index_add_(0, position.view(-1), gradient.view(-1, shape[-1]).double())
        expected[1] = 0
        assert torch.equal(x.grad, expected[:300].to(dtype))
