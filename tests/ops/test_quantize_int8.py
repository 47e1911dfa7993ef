"""Tests of quantize_int8 against PyTorch."""

import pytest
import torch

from reference_ops import quantize_int8
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_QuantizeInt8(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _aligned = [(64, 4096), (4, 8, 1024), (2, 40960)]
    _ragged = [(5, 7, 1337), (3, 40011), (6, 1), (1,)]
    _empty = [(0,), (3, 0), (0, 5)]
    _huge = (2**19 + 1, 4096)
    _arguments = [{"block": (1, 191)}, {"block": (7, 7)}, {"block": (7, 1337)}]
    _tolerances = {
        torch.float32: {"rtol": 0, "atol": 0},
        torch.float16: {"rtol": 0, "atol": 0},
        torch.bfloat16: {"rtol": 0, "atol": 0},
    }

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        return {"x": torch.randn(shape, dtype=dtype, device=device)}

    @staticmethod
    def reference(
        x: torch.Tensor,
        block: tuple[int, int] | None = None,
        out: tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The same in fp32 by PyTorch; blocks of nothing but zeros have the smallest normal number as their scale."""
        if x.numel() == 0:
            return x.to(torch.int8), torch.full((*x.shape[:-1], 1), 2**-126, device=x.device)
        rows, columns = block or (1, x.shape[-1])
        blocks = x.float().reshape(*x.shape[:-2], -1, rows, x.shape[-1] // columns, columns)
        scale = (blocks.abs().amax((-3, -1), keepdim=True) * (1 / 127)).clamp(min=2**-126)
        values = (blocks * scale.reciprocal()).reshape(x.shape)
        scale = scale.squeeze((-3, -1))
        return values.round().nan_to_num(0).to(torch.int8), scale if x.ndim > 1 else scale[0]

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
        self.assertCorrectness(quantize_int8, self.reference, kwargs, **tolerances, **options)

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
        expected = quantize_int8(**kwargs)
        memory = [x.new_full((x.numel() + 32,), 7) for x in expected]  # with more on either side
        out = tuple(x[16:-16].view(result.shape) for x, result in zip(memory, expected, strict=True))
        assert quantize_int8(**kwargs, out=out) is out
        assert all(torch.equal(*pair) for pair in zip(out, expected, strict=True))
        assert all(torch.cat((x[:16], x[-16:])).eq(7).all() for x in memory)
        for wrong in (out[1:], (*out[1:], out[0].new_empty((*out[0].shape, 2)))):
            with pytest.raises(ValueError, match="out"):
                quantize_int8(**kwargs, out=wrong)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            quantize_int8(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            quantize_int8(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            quantize_int8(**kwargs, unknown=1)

    @pytest.mark.large
    @pytest.mark.parametrize("backend", _backends)
    def test_op_more_than_int32_elements(self, backend):
        self._setup(backend)
        if torch.cuda.mem_get_info()[0] < 80 * 2**30:
            pytest.skip("needs 80 GiB of free GPU memory")
        self._check(self.inputs(self._huge, torch.bfloat16 if torch.bfloat16 in self._dtypes else self._dtypes[0]))

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("block", [(1, 128), (128, 128), (1, 32), (4, 1), (256, 384), (2, 24)], ids=str)
    def test_op_blocks(self, block, dtype, backend):
        self._setup(backend)
        x = self.inputs((2, 256, 384), dtype)["x"] * torch.rand(256, 384, device="cuda").to(dtype)
        self._check({"x": x, "block": block})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("block", [None, (1, 128), (3, 128), (3, 384)], ids=str)
    def test_op_rows_of_a_view(self, block, backend):
        self._setup(backend)
        memory = self.inputs((7, 6, 1000), self._dtypes[0])["x"]
        for x in (memory[..., 8:776], memory[:, 1:4, 8:776], memory.permute(1, 0, 2)[:, 1:, 8:776]):
            self._check({"x": x, "block": block}, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(("shape", "block"), [((3, 70001), None), ((2, 600, 300), (300, 150))], ids=str)
    def test_op_where_the_largest_is(self, shape, block, backend):
        self._setup(backend)
        for position in (0, -1):
            x = self.inputs(shape, self._dtypes[0])["x"]
            x.view(-1)[position] = -1000
            self._check({"x": x, "block": block})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("shape", [(9, 3000), (2, 40011)], ids=str)
    def test_op_comes_back(self, shape, dtype, backend):
        self._setup(backend)
        x = self.inputs(shape, dtype)["x"]
        values, size = quantize_int8(x)
        error = size / 2
        assert torch.all((values.float() * size - x.float()).abs() <= error * 1.0001)
        assert torch.equal(values.float().abs().amax(-1), torch.full_like(size[:, 0], 127))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_rounds_to_nearest_even(self, backend):
        self._setup(backend)
        x = torch.tensor([-127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, -126.5, 5.4375, 5.5625])
        expected = torch.tensor([-127, 0, 2, 2, 0, -2, -2, 126, -126, 5, 6])
        values, size = quantize_int8(x.to(self._dtypes[0]).cuda())
        assert size.item() == 1
        assert torch.equal(values.cpu().float(), expected.float())

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("shape", [(7, 5), (7, 3000), (7, 40011)], ids=str)
    def test_op_zeros_and_special_rows(self, shape, backend):
        self._setup(backend)
        x = self.inputs(shape, self._dtypes[0])["x"]
        x[1] = 0
        x[2, shape[1] // 2] = float("nan")
        x[3, shape[1] // 3] = float("-inf")
        x[4] *= 1e-40  # nothing, or so near to it that the scale has a reciprocal only because there is a smallest one
        x[5] = torch.finfo(x.dtype).max
        values, size = quantize_int8(x)
        actual = values.float() * size
        assert torch.all(values[1].float() == 0)
        assert size[1:4].flatten().tolist() == pytest.approx([2**-126, float("nan"), float("inf")], nan_ok=True)
        assert torch.all(actual[2:4].isnan())  # neither comes back, nor the rest of its row
        assert torch.all(actual[[0, 1, 4, 5, 6]].isfinite())
        self._check({"x": x}, equal_nan=True)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_strided_and_overlapping(self, backend):
        self._setup(backend)
        memory = self.inputs((240000,), self._dtypes[0])["x"]
        x = memory.view(6, 40000)  # so long that a block reads it again after others have written
        values, size = quantize_int8(x)
        strided = values.new_empty(values.mT.shape).mT, size.new_empty(6, 2)[:, :1]
        pair = memory.view(values.dtype)[1:240001], memory.view(size.dtype)[75000:75006]
        for out in (strided, (pair[0].view(6, 40000), pair[1].view(6, 1))):
            quantize_int8(x, out=out)
            assert torch.equal(out[0].float(), values.float())
            assert torch.equal(out[1], size)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("wrong", "error"),
        [((1, 5), ValueError), ((4, 34), ValueError), ((0, 34), TypeError), (34, TypeError), ((1, 2, 17), TypeError)],
        ids=str,
    )
    def test_op_bad_block(self, wrong, error, backend):
        self._setup(backend)
        x = self.inputs((6, 34), self._dtypes[0])["x"]
        with pytest.raises(error, match="block is"):
            quantize_int8(x, block=wrong)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_bad_scalar(self, backend):
        self._setup(backend)
        x = self.inputs((6, 34), self._dtypes[0])["x"]
        with pytest.raises(ValueError, match="scalar"):
            quantize_int8(x[0, 0])
        values, size = quantize_int8(x)
        for wrong in ((values[1:], size), (values.half(), size), (values, size[:, 0]), (values, size.double())):
            with pytest.raises(ValueError, match="out has"):
                quantize_int8(x, out=wrong)
