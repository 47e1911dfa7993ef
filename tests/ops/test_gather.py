"""Tests of gather against PyTorch."""

import pytest
import torch

from reference_ops import gather
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Gather(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _trained = ["x"]  # that have a gradient
    _aligned = [(4, 8, 256), (64, 1024)]
    _ragged = [(5, 37, 131), (3, 1009), (7,), (1, 1)]
    _empty = [(0, 5), (3, 0)]
    _huge = (2**19 + 1, 4096)
    _arguments = [
        {"dim": 0},
        {"dim": 1},
        {"dim": -3},
    ]
    _tolerances = {
        torch.float32: {"rtol": 1e-5, "atol": 1e-5},
    }

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        places = max(min(shape), 1)  # whatever the dimension
        return {
            "x": torch.randn(shape, dtype=dtype, device=device),
            "index": torch.randint(0, places, shape, device=device),
            "dim": -1,
        }

    @staticmethod
    def reference(
        x: torch.Tensor,
        dim: int,
        index: torch.Tensor,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """gather of PyTorch, its gradient summed in fp32 or wider and rounded once."""
        if x.element_size() == 2:
            return torch.gather(x.float(), dim, index.long()).to(x.dtype)
        return torch.gather(x, dim, index.long())

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
        self.assertCorrectness(gather, self.reference, kwargs, **tolerances, **options)

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
        expected = gather(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert gather(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            gather(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            gather(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            gather(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            gather(**kwargs, unknown=1)

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
        position = torch.tensor([2, -1, 6, 2**32 + 1, -(2**63), 5], device="cuda")[:, None].repeat(1, 34)
        wrong = float("nan")
        expected = torch.full((6, 34), wrong, dtype=dtype, device="cuda")
        expected[0], expected[5] = values[2], values[5]
        actual = gather(values.requires_grad_(), 0, position)
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
        actual.sum().backward()
        assert values.grad[:, 7].tolist() == [0, 0, 1, 0, 0, 1]

    @pytest.mark.parametrize("backend", _backends)
    def test_op_index_of_int32(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        kwargs["index"] = kwargs["index"].int()
        kwargs["x"].requires_grad_()
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dim", [0, 1, 2])
    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)], ids=str)
    @pytest.mark.parametrize(
        ("shape", "part"), [((5, 37, 131), (4, 30, 131)), ((70, 3, 50), (70, 3, 50)), ((1, 9, 1), (1, 3, 1))], ids=str
    )
    def test_op_dimensions(self, shape, part, order, dim, backend):
        self._setup(backend)
        kwargs = self.inputs(shape, self._dtypes[0])
        longer = list(part)
        longer[dim] = shape[dim] + 7
        index = torch.randint(0, shape[dim], longer, device="cuda")
        kwargs.update(x=kwargs["x"].permute(order).contiguous().permute([order.index(d) for d in range(3)]))
        self._check({**kwargs, "index": index, "dim": dim})
        self._check({**kwargs, "index": index.mT.contiguous().mT, "dim": dim})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(), (2, 3, 1, 4, 3, 2)], ids=str)
    def test_op_ranks(self, shape, backend):
        self._setup(backend)
        kwargs = self.inputs((*shape, 1), self._dtypes[0])
        kwargs = {name: x[..., 0] if isinstance(x, torch.Tensor) else x for name, x in kwargs.items()}
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_no_indices(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        kwargs.update(index=kwargs["index"][:0], dim=0)
        assert gather(**kwargs).shape == (0, 34)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_strided_and_overlapping(self, backend):
        self._setup(backend)
        kwargs = self.inputs((150, 150), self._dtypes[0])  # of several tiles, so that one could overwrite another
        expected = gather(**kwargs)
        strided = expected.new_empty(expected.mT.shape).mT
        gather(**kwargs, out=strided)
        assert torch.equal(strided, expected)
        for name in ("x",):
            out = kwargs[name].clone()
            gather(**{**kwargs, name: out}, out=out)
            assert torch.equal(out, expected)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("name", "wrong", "error"),
        [
            ("index", torch.zeros(6), TypeError),
            ("index", torch.zeros(6, dtype=torch.int64), ValueError),
            ("dim", 2, ValueError),
            ("dim", -3, ValueError),
            ("dim", 1.0, TypeError),
        ],
        ids=str,
    )
    def test_op_bad_argument(self, name, wrong, error, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        with pytest.raises(error, match=f"^{name} is "):
            gather(**{**kwargs, name: wrong})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_bad_shape(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        position = kwargs["index"]
        for wrong in (position[0], position[None], position.repeat(2, 1)):
            with pytest.raises(ValueError, match="index has shape"):
                gather(**{**kwargs, "index": wrong})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_with_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        out = gather(**kwargs)
        for name in self._trained:
            gather(**{**kwargs, name: kwargs[name].clone().requires_grad_()})
            with pytest.raises(ValueError, match="out is"):
                gather(**{**kwargs, name: kwargs[name].clone().requires_grad_()}, out=out)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_expanded_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        for name in self._trained:
            kwargs[name].requires_grad_()
        gather(**kwargs).sum().backward()
        values = {name: kwargs[name].detach().clone().requires_grad_() for name in self._trained}
        self.reference(**{**kwargs, **values}).sum().backward()
        for name in self._trained:
            assert torch.equal(kwargs[name].grad, values[name].grad)
