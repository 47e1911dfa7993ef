"""Tests of scatter_add against PyTorch."""

import pytest
import torch

from reference_ops import scatter_add
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_ScatterAdd(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _trained = ["x", "src"]  # that have a gradient
    _aligned = [(4, 8, 256), (64, 1024), (256, 2, 2, 256)]
    _ragged = [(5, 37, 131), (3, 1009), (7,), (1, 1), (257, 2, 3, 65)]
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
        size = shape[:1] if len(shape) == 4 and shape[0] > 255 else shape  # an index for each slice of many
        return {
            "x": torch.randn(shape, dtype=dtype, device=device),
            "src": torch.randn(shape, dtype=dtype, device=device),
            "index": torch.randint(0, places, size, device=device),
            "dim": -1 if size == shape else 0,
        }

    @staticmethod
    def reference(
        x: torch.Tensor,
        dim: int,
        index: torch.Tensor,
        src: torch.Tensor,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """scatter_add of PyTorch, or index_add, summed wide and rounded once."""
        wide = torch.float32 if x.element_size() == 2 else torch.float64
        if index.ndim < src.ndim:
            return x.to(wide).index_add(dim, index, src.to(wide)).to(x.dtype)
        return x.to(wide).scatter_add(dim, index.long(), src.to(wide)).to(x.dtype)

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
        self.assertCorrectness(scatter_add, self.reference, kwargs, **tolerances, **options)

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
        expected = scatter_add(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert scatter_add(**kwargs, out=out) is out
        torch.testing.assert_close(out, expected)  # atomics add in any order
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            scatter_add(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            scatter_add(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            scatter_add(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            scatter_add(**kwargs, unknown=1)

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
        x = torch.ones_like(values).requires_grad_()
        expected = values.clone()
        expected[2] += 1
        expected[5] += 1
        actual = scatter_add(values, 0, position, x)
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
        values = torch.ones((6, 300), dtype=dtype, device="cuda")  # rows so long that their indices are sorted
        assert scatter_add(values, 0, position[:, 0], values)[:, 7].tolist() == [1, 1, 2, 1, 1, 2]
        actual.sum().backward()
        assert x.grad[:, 7].tolist() == [1, 0, 0, 0, 0, 1]

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
        index = torch.randint(0, shape[dim], part, device="cuda")
        kwargs.update(src=kwargs["src"].permute(order).contiguous().permute([order.index(d) for d in range(3)]))
        self._check({**kwargs, "index": index, "dim": dim})
        self._check({**kwargs, "index": index.mT.contiguous().mT, "dim": dim})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dim", [0, 1, 2])
    def test_op_slices(self, dim, backend):
        self._setup(backend)
        kwargs = self.inputs((5, 37, 131), self._dtypes[0])
        longer = torch.cat([kwargs["src"], kwargs["src"]], dim)
        index = torch.randint(0, kwargs["x"].shape[dim], longer.shape[dim : dim + 1], device="cuda")
        self._check({**kwargs, "src": longer, "index": index, "dim": dim})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    def test_op_many_additions(self, dtype, backend):
        self._setup(backend)
        x, values = torch.ones((1, 3), dtype=dtype, device="cuda"), torch.ones((5119, 3), dtype=dtype, device="cuda")
        position = torch.zeros(5119, dtype=torch.int64, device="cuda")
        actual = scatter_add(x, 0, position, values)
        assert actual.tolist() == [[5120, 5120, 5120]]  # exact in fp32; bf16 knows no odd number beyond 256
        out = torch.empty_like(x)
        scatter_add(x, 0, position, values, out=out)
        assert torch.equal(out, actual)

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
        assert torch.equal(scatter_add(**kwargs), kwargs["x"])

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_strided_and_overlapping(self, backend):
        self._setup(backend)
        kwargs = self.inputs((150, 150), self._dtypes[0])  # of several tiles, so that one could overwrite another
        kwargs.update({name: kwargs[name].round() for name in ("x", "src")})  # exact in any order
        expected = scatter_add(**kwargs)
        strided = expected.new_empty(expected.mT.shape).mT
        scatter_add(**kwargs, out=strided)
        assert torch.equal(strided, expected)
        for name in ("x", "src"):
            out = kwargs[name].clone()
            scatter_add(**{**kwargs, name: out}, out=out)
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
            ("src", torch.zeros((6, 34), dtype=torch.complex64), TypeError),
            ("src", torch.zeros((6, 34), dtype=torch.float32), ValueError),
        ],
        ids=str,
    )
    def test_op_bad_argument(self, name, wrong, error, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        with pytest.raises(error, match=f"^{name} is "):
            scatter_add(**{**kwargs, name: wrong})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_bad_shape(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        position = kwargs["index"]
        for wrong in (position[0, 1:], position[None], position.repeat(2, 1)):
            with pytest.raises(ValueError, match="index has shape"):
                scatter_add(**{**kwargs, "index": wrong})
        with pytest.raises(ValueError, match="index has shape"):
            scatter_add(**{**kwargs, "src": kwargs["src"][:, 1:]})
        with pytest.raises(ValueError, match="src is"):
            scatter_add(**{**kwargs, "src": kwargs["src"][0]})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("size", [1, 5, 330], ids=str)
    @pytest.mark.parametrize("shape", [(600, 40), (257, 1030), (3, 1)], ids=str)
    def test_op_repeated_rows(self, shape, size, dtype, backend):
        self._setup(backend)
        x, values = torch.randint(0, 5, (300, shape[1]), device="cuda"), torch.randint(0, 5, shape, device="cuda")
        position = torch.randint(0, size, shape[:1], device="cuda")  # some are outside of 300, and are not added
        expected = torch.zeros((330, shape[1]), dtype=torch.float64, device="cuda")
        expected[:300] = x
        expected.index_add_(0, position, values.double())
        # Sums of integers are exact, so that rounding once gives the same in any order
        expected, x, values = expected[:300].to(dtype), x.to(dtype), values.to(dtype)
        assert torch.equal(scatter_add(x, 0, position, values), expected)
        scatter_add(x, 0, position, values, out=x)
        assert torch.equal(x, expected)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_with_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        out = scatter_add(**kwargs)
        for name in self._trained:
            scatter_add(**{**kwargs, name: kwargs[name].clone().requires_grad_()})
            with pytest.raises(ValueError, match="out is"):
                scatter_add(**{**kwargs, name: kwargs[name].clone().requires_grad_()}, out=out)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_expanded_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        for name in self._trained:
            kwargs[name].requires_grad_()
        scatter_add(**kwargs).sum().backward()
        values = {name: kwargs[name].detach().clone().requires_grad_() for name in self._trained}
        self.reference(**{**kwargs, **values}).sum().backward()
        for name in self._trained:
            assert torch.equal(kwargs[name].grad, values[name].grad)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_gradient_of_a_part(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        kwargs["src"].requires_grad_()
        with pytest.raises(ValueError, match="src has shape"):
            scatter_add(**{**kwargs, "index": kwargs["index"][1:]})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dim", [0, 1, 2])
    def test_op_gradient_of_slices(self, dim, backend):
        self._setup(backend)
        shape = (5, 37, 131)
        kwargs = self.inputs(shape, self._dtypes[0])
        half = tuple(slice(None) if d == dim else slice(size // 2) for d, size in enumerate(shape))
        x, values = kwargs["x"].requires_grad_(), kwargs["src"][half].requires_grad_()
        position = torch.randint(0, shape[dim], values.shape[dim : dim + 1], device="cuda")
        gradient = torch.randn(shape, device="cuda").to(x.dtype)
        results = torch.autograd.grad(scatter_add(x, dim, position, values), (x, values), gradient)
        assert torch.equal(results[0], gradient)
        assert torch.equal(results[1], gradient[half].index_select(dim, position))
