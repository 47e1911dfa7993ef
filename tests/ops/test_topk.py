"""Tests of topk against PyTorch."""

import pytest
import torch

from reference_ops import topk
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Topk(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(2, 3, 8192), (64, 256)]
    _ragged = [(5, 20011), (5, 7, 1337), (6, 1), (1,)]
    _empty = [(0,), (3, 0), (0, 5)]
    _huge = (2**19 + 1, 4096)
    _arguments = [{"k": 1}, {"k": 64}, {"k": 0}, {"dim": 0, "k": 3}, {"dim": 1}, {"largest": False}, {"sorted": False}]
    _tolerances = {
        torch.float32: {"rtol": 0, "atol": 0},
        torch.float16: {"rtol": 0, "atol": 0},
        torch.bfloat16: {"rtol": 0, "atol": 0},
    }

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        return {"x": torch.randn(shape, dtype=dtype, device=device), "k": min(shape[-1], 7)}

    @staticmethod
    def reference(
        x: torch.Tensor,
        k: int,
        dim: int = -1,
        largest: bool = True,
        sorted: bool = True,
        out: tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The first of what PyTorch sorts, which keeps the order of equal elements."""
        pair = torch.sort(x, dim=dim, descending=largest, stable=True)
        return tuple(result.narrow(dim, 0, k).contiguous() for result in pair)

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
            values = self.reference(**kwargs)[0].detach().float().nan_to_num(0.0, 0.0, 0.0)
            peak = values.abs().max().item() if values.numel() else 1.0
            tolerances = {"rtol": 1e-2, "atol": 2e-2 * min(1.0, peak)}
        self.assertCorrectness(topk, self.reference, kwargs, **tolerances, **options)

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
        expected = topk(**kwargs)
        memory = [x.new_full((x.numel() + 32,), 7) for x in expected]  # with more on either side
        out = tuple(x[16:-16].view(result.shape) for x, result in zip(memory, expected, strict=True))
        assert topk(**kwargs, out=out) is out
        assert all(torch.equal(*pair) for pair in zip(out, expected, strict=True))
        assert all(torch.cat((x[:16], x[-16:])).eq(7).all() for x in memory)
        for wrong in (out[1:], (*out[1:], out[0].new_empty((*out[0].shape, 2)))):
            with pytest.raises(ValueError, match="out"):
                topk(**kwargs, out=wrong)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            topk(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            topk(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            topk(**kwargs, unknown=1)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("options", [{}, {"largest": False}, {"sorted": False}], ids=str)
    @pytest.mark.parametrize(("shape", "size"), [((9, 8), 8), ((3, 99), 64), ((2, 9000), 33), ((2, 70001), 9)], ids=str)
    def test_op_as_topk(self, shape, size, options, backend):
        self._setup(backend)
        x = self.inputs(shape, self._dtypes[0])["x"]
        actual, position = topk(x, size, **options)
        assert torch.equal(actual, torch.topk(x, size, **{**options, "sorted": True})[0])
        assert torch.equal(actual, x.gather(1, position))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("largest", [True, False])
    @pytest.mark.parametrize("n", [64, 66000], ids=str)
    def test_op_ties_and_special_values(self, n, largest, dtype, backend):
        self._setup(backend)
        x = torch.zeros((8, n), dtype=dtype, device="cuda")
        x[1] = float("nan")
        x[2, [3, n // 2, n - 1]] = float("nan")
        x[3] = float("-inf")
        x[3, [5, n - 2]] = float("inf")
        x[4] = torch.arange(n, device="cuda") % 5
        x[5] = torch.arange(n, device="cuda") // (n // 16)  # all in one part of the row
        x[6] = -x[5]
        x[7, 1::2] = float("-inf")
        self._check({"x": x, "k": 40, "largest": largest}, equal_nan=True)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("n", [3000, 70001], ids=str)
    def test_op_all_in_one_lane(self, n, backend):
        self._setup(backend)
        x = self.inputs((3, n), self._dtypes[0])["x"] - 1000  # zeros beyond the end must not win
        x[0, 1000::2048] += 1100
        x[1, ::2048] = -900
        x[2, (n - 1) % 2048 :: 2048] += 100
        self._check({"x": x, "k": 48})
        self._check({"x": -x, "k": 48, "largest": False})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dim", [0, 1, 2, -2], ids=str)
    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)], ids=str)
    def test_op_memory_orders(self, order, dim, backend):
        self._setup(backend)
        x = self.inputs((9, 17, 34), self._dtypes[0])["x"].permute(order)[..., 1:]
        self._check({"x": x, "k": 5, "dim": dim})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_strided_and_overlapping(self, backend):
        self._setup(backend)
        x = self.inputs((6, 5, 34), self._dtypes[0])["x"]
        expected = topk(x, 4)
        strided = tuple(result.new_empty(result.mT.shape).mT for result in expected)
        for out in (strided, (x[..., 3:7], torch.empty_like(expected[1]))):
            assert topk(x, 4, out=out) is out
            assert torch.equal(out[0], expected[0])
            assert torch.equal(out[1], expected[1])

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("wrong", "error", "match"),
        [
            ({"k": 65}, ValueError, "k is 65; it must be at most 64"),
            ({"shape": (2, 3), "k": 4}, ValueError, "k is 4; .* 3 elements"),
            ({"k": -1}, ValueError, "k is -1"),
            ({"k": 2.0}, TypeError, "k is 2.0"),
            ({"dim": 2}, ValueError, "dim is 2"),
            ({"dim": -3}, ValueError, "dim is -3"),
            ({"dim": 0.0}, TypeError, "dim is 0.0"),
            ({"largest": 1}, TypeError, "largest is 1"),
            ({"sorted": None}, TypeError, "sorted is None"),
            ({"shape": (), "k": 1}, ValueError, "dim is -1"),
        ],
        ids=str,
    )
    def test_op_bad_arguments(self, wrong, error, match, backend):
        self._setup(backend)
        kwargs = {"k": 1, "shape": (2, 80), **wrong}
        x = torch.ones(kwargs.pop("shape"), dtype=self._dtypes[0], device="cuda")
        with pytest.raises(error, match=match):
            topk(x, **kwargs)
