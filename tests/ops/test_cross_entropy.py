"""Tests of cross_entropy against PyTorch."""

import pytest
import torch

from reference_ops import cross_entropy
from reference_ops.backend import is_backend_available
from reference_ops.backend import set_backend

from .. import common


class Test_CrossEntropy(common.PyTestCase):
    _backends = ["cutile"]
    _dtypes = [torch.float32, torch.float16, torch.bfloat16]
    _trained = ["logits"]  # that have a gradient
    _aligned = [(64, 4096), (4, 8, 1024), (3, 32768)]
    _ragged = [(5, 7, 1337), (3, 20011), (2, 20016), (6, 1), (7,)]
    _empty = [(0, 5), (3, 0, 7)]
    _huge = (2**16 + 1, 2**15)
    _arguments = [
        {"ignore_index": 3},
        {"label_smoothing": 0.1},
        {"reduction": "sum"},
        {"reduction": "mean"},
        {"reduction": "mean", "label_smoothing": 0.25},
    ]
    _tolerances = {torch.float32: {"rtol": 1e-5, "atol": 1e-5}}

    @staticmethod
    def inputs(shape, dtype, device="cuda"):
        return {
            "logits": torch.randn(shape, dtype=dtype, device=device),
            "target": torch.randint(0, shape[-1], shape[:-1], device=device),
            "reduction": "none",
        }

    @staticmethod
    def reference(
        logits: torch.Tensor,
        target: torch.Tensor,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """cross_entropy of PyTorch, in fp32 and rounded once."""
        loss = torch.nn.functional.cross_entropy(
            logits.float().reshape(-1, logits.shape[-1]),
            target.long().reshape(-1),
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            reduction=reduction,
        )
        return loss.to(logits.dtype).reshape(target.shape if reduction == "none" else ())

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
        self.assertCorrectness(cross_entropy, self.reference, kwargs, **tolerances, **options)

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
        expected = cross_entropy(**kwargs)
        memory = expected.new_full((expected.numel() + 32,), 7)  # with more on either side
        out = memory[16:-16].view(expected.shape)
        assert cross_entropy(**kwargs, out=out) is out
        assert torch.equal(out, expected)
        assert torch.cat((memory[:16], memory[-16:])).eq(7).all()
        with pytest.raises(ValueError, match="out"):
            cross_entropy(**kwargs, out=out.new_empty((*out.shape, 2)))

    @pytest.mark.parametrize("backend", _backends)
    def test_op_errors(self, backend):
        self._setup(backend)
        kwargs = self.inputs(self._ragged[0], self._dtypes[0])
        name = next(iter(kwargs))
        with pytest.raises(TypeError, match=f"^{name} is "):
            cross_entropy(**{**kwargs, name: kwargs[name].to(torch.complex64)})
        with pytest.raises(ValueError, match=f"^{name} is "):
            cross_entropy(**{**kwargs, name: kwargs[name].cpu()})
        with pytest.raises(TypeError, match="unknown"):
            cross_entropy(**kwargs, unknown=1)

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
    @pytest.mark.parametrize("smoothing", [0.0, 0.3], ids=str)
    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    @pytest.mark.parametrize("ignored", [-100, 2], ids=str)
    def test_op_ignored_rows(self, ignored, reduction, smoothing, backend):
        self._setup(backend)
        kwargs = self.inputs((30, 5), self._dtypes[0])
        kwargs["target"][::3] = ignored
        kwargs.update(target=kwargs["target"].int(), ignore_index=ignored)
        kwargs.update(reduction=reduction, label_smoothing=smoothing)
        kwargs["logits"].requires_grad_()
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_many_rows(self, backend):
        self._setup(backend)
        kwargs = self.inputs((9001, 5), self._dtypes[0])
        kwargs.update(ignore_index=2, reduction="mean")
        self._check(kwargs)

    @pytest.mark.parametrize("backend", _backends)
    def test_op_no_row_counts(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        kwargs["target"][:] = -100
        self._check({**kwargs, "reduction": "mean"}, equal_nan=True)
        self._check({**kwargs, "reduction": "sum"})

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("n", [7, 3000, 20011], ids=str)
    def test_op_masked_classes(self, n, backend):
        self._setup(backend)
        kwargs = self.inputs((4, n), self._dtypes[0])
        kwargs["logits"][1, : n // 2] = -torch.inf
        kwargs["logits"][2] = -torch.inf
        kwargs["logits"][3, -1] = torch.inf
        self._check(kwargs, equal_nan=True)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("dtype", _dtypes, ids=str)
    @pytest.mark.parametrize("n", [1000, 1001, 20009], ids=str)
    def test_op_padded_classes(self, n, dtype, backend):
        self._setup(backend)
        kwargs = self.inputs((5, n), dtype)
        kwargs["target"][:2] = n - 1
        # A stride of whole 16 bytes, and what is read with the last classes must not count
        kwargs["logits"] = torch.nn.functional.pad(kwargs["logits"], (0, 32 - n % 32), value=torch.inf)[:, :n]
        self._check({**kwargs, "label_smoothing": 0.1}, check_stride=False)

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize("position", [-1, 34, 2**31 + 3], ids=str)
    def test_op_target_outside(self, position, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        kwargs["target"][2] = position
        actual = cross_entropy(**kwargs)
        assert actual.isnan().tolist() == [False, False, True, False, False, False]

    @pytest.mark.parametrize("backend", _backends)
    @pytest.mark.parametrize(
        ("name", "wrong", "error"),
        [
            ("target", torch.zeros(6), TypeError),
            ("target", torch.zeros(5, dtype=torch.int64), ValueError),
            ("ignore_index", 1.5, TypeError),
            ("label_smoothing", 1.5, ValueError),
            ("reduction", "max", ValueError),
        ],
        ids=str,
    )
    def test_op_bad_argument(self, name, wrong, error, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        with pytest.raises(error, match=f"^{name} is "):
            cross_entropy(**{**kwargs, name: wrong})

    @pytest.mark.parametrize("backend", _backends)
    def test_op_out_with_gradient(self, backend):
        self._setup(backend)
        kwargs = self.inputs((6, 34), self._dtypes[0])
        out = cross_entropy(**kwargs)
        kwargs["logits"].requires_grad_()
        with pytest.raises(ValueError, match="out"):
            cross_entropy(**kwargs, out=out)
