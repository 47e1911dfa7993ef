"""Tests of cat against PyTorch."""

import pytest
import torch

from reference_ops import cat
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_Cat(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(4, 128, 256), (64, 64), (2, 4, 16, 64)]
    _ragged = [(5, 37, 131), (3, 1009), (7, 1), (1, 1), (2, 3, 5, 7)]
    _empty = [(0, 5), (3, 0)]
    _huge = (2**19 + 1, 4096)
    _arguments = [
        {"dim": 1},
        {"dim": 2},
        {"dim": -3},
        {"dim": -1},
    ]
    _tolerances = {
        torch.float32: {"rtol": 0, "atol": 0},
        torch.float16: {"rtol": 0, "atol": 0},
        torch.bfloat16: {"rtol": 0, "atol": 0},
    }

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        x = torch.randn(shape, dtype=dtype, device=device)
        return {"tensors": [x, x.flip(0) if x.ndim < 4 else x.mT.contiguous().mT]}

    @staticmethod
    def reference(
        tensors: list[torch.Tensor] | tuple[torch.Tensor, ...],
        dim: int = 0,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """cat of PyTorch."""
        return torch.cat(tensors, dim)

    def _setup(self, backend):
        if not is_backend_available(backend):
            pytest.skip(f"backend {backend} is not available")
        set_backend(backend)
        self.setUp()

    def _same(self, kwargs):
        """Whether bits are those of PyTorch, and memory is contiguous."""
        actual = cat(**kwargs)
        assert actual.is_contiguous()
        torch.testing.assert_close(actual, self.reference(**kwargs), rtol=0, atol=0, equal_nan=True)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", _aligned + _ragged + _empty, ids=str)
    def test_op(self, shape, dtype, backend):
        self._setup(backend)
        self._same(self.inputs(shape, dtype))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("arguments", _arguments, ids=str)
    @pytest.mark.parametrize("size", [1, 5, 10], ids=str)
    def test_op_arguments(self, size, arguments, backend):
        self._setup(backend)
        x = self.inputs((53, 37, 70), self._dtypes[0])["tensors"][0]
        tensors = list(x.tensor_split([1, 1, 18, 30, 31, 33, 34, 35, 36][: size - 1], arguments["dim"]))
        self._same({"tensors": tensors, **arguments})
        self._same({"tensors": [x.contiguous() for x in tensors], **arguments})
        self._same({"tensors": tuple(x.mT.contiguous().mT for x in tensors), **arguments})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dims", [(1, 2, 3, 0), (3, 1, 0, 2)], ids=str)
    def test_op_not_contiguous(self, dims, backend):
        self._setup(backend)
        x = self.inputs((5, 6, 34, 7), self._dtypes[-1])["tensors"][0]
        strided = torch.stack([x, x + 1], -1)[..., 1]
        other = x.permute(dims).contiguous().permute([dims.index(d) for d in range(4)])
        self._same({"tensors": [x, strided, other, x[:1].expand(9, -1, -1, -1)], "dim": 0})
        self._same({"tensors": [x[..., 2:], strided, other[..., ::2]], "dim": 3})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")], ids=str)
    def test_op_special_values(self, value, backend):
        self._setup(backend)
        dtype = self._dtypes[0]
        tensors = [x.clone() for x in self.inputs(self._ragged[0], dtype)["tensors"]]
        tensors[1].view(-1)[::97] = value
        self._same({"tensors": tensors, "dim": 0})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_empty_inputs(self, backend):
        self._setup(backend)
        x = self.inputs((5, 34), self._dtypes[0])["tensors"][0]
        none = x[0, :0]
        self._same({"tensors": [none, x, x[:0], none, x[:2]], "dim": 0})
        self._same({"tensors": [none, x[:, :0], x], "dim": -1})
        self._same({"tensors": [x, x[:0]], "dim": 0})
        self._same({"tensors": [none, none], "dim": 0})
        self._same({"tensors": [none, x[0]], "dim": 0})
        self._same({"tensors": [x[:0], x[:0]], "dim": 1})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out(self, backend):
        self._setup(backend)
        x = self.inputs((150, 150), self._dtypes[0])["tensors"][0]
        tensors = [x[:70], x[70:]]
        expected = self.reference(tensors[::-1])
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert cat(tensors[::-1], out=out) is out
        assert torch.equal(out, expected)
        assert torch.stack((memory[:16], memory[-16:])).eq(7).all()
        strided = torch.empty_like(expected.mT).mT
        cat(tensors[::-1], out=strided)
        assert torch.equal(strided, expected)
        cat(tensors[::-1], out=x)
        assert torch.equal(x, expected)
        for wrong in (out[1:], out.bool(), out.cpu()):
            with pytest.raises(ValueError, match="out is"):
                cat(tensors, out=wrong)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        x = self.inputs((5, 34), self._dtypes[0])["tensors"][0]
        for wrong in (x, (), [x, 1], [x, x.to(torch.complex64)], [x, x.to(torch.bool)], [1.0, x]):
            with pytest.raises(TypeError, match="tensors"):
                cat(wrong)
        for wrong in ([x, x.cpu()], [x.cpu()], [x, x[0]], [x, x[:, 1:]], [x, x[:0, :0]], [x, x[:0, 1:]]):
            with pytest.raises(ValueError, match="tensors"):
                cat(wrong)
        for wrong in (2, -3):
            with pytest.raises(ValueError, match="dim is"):
                cat([x], dim=wrong)
        with pytest.raises(ValueError, match="dim is"):
            cat([x[0, 0]])
        with pytest.raises(TypeError, match="dim is"):
            cat([x], dim=1.0)
        with pytest.raises(TypeError, match="unknown"):
            cat([x], unknown=1)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._same(self.inputs(self._huge, self._dtypes[-1]))
