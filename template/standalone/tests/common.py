"""What every operator test shares: seeding, tolerances and the comparison with PyTorch."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

_TOLERANCES = {  # dtype: (rtol, atol)
    torch.float64: (1e-12, 1e-15),
    torch.float32: (1e-5, 1e-8),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (1e-2, 2e-2),
}


def get_dtype_tolerances(dtype: torch.dtype) -> dict[str, float]:
    """Relative and absolute tolerance of a result in `dtype`; integers are compared exactly."""
    rtol, atol = _TOLERANCES.get(dtype, (0.0, 0.0))
    return {"rtol": rtol, "atol": atol}


def _clone(value: Any, requires_grad: bool = False) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().clone().requires_grad_(requires_grad and value.requires_grad)


def _first_tensor(kwargs: dict[str, Any]) -> torch.Tensor:
    return next(value for value in kwargs.values() if isinstance(value, torch.Tensor))


class PyTestCase:
    """Base of the operator tests; TileGym's has the same methods."""

    def setUp(self) -> None:
        """Seed the generators, so that a failure can be repeated, and give back what the last test left."""
        if not torch.cuda.is_available():
            pytest.skip("no GPU: CUDA is not available")
        torch.cuda.empty_cache()
        torch.manual_seed(0)

    def assertCorrectness(
        self,
        test_fn: Callable[..., torch.Tensor],
        ref_fn: Callable[..., torch.Tensor],
        kwargs: dict[str, Any],
        gradient: torch.Tensor | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_stride: bool = True,
    ) -> None:
        """Compare a call with its reference, and its gradients where an input requires them."""
        tolerances = get_dtype_tolerances(_first_tensor(kwargs).dtype)
        close = {
            "rtol": tolerances["rtol"] if rtol is None else rtol,
            "atol": tolerances["atol"] if atol is None else atol,
            "equal_nan": equal_nan,
            "check_stride": check_stride,
        }
        expected_kwargs = {name: _clone(value, requires_grad=True) for name, value in kwargs.items()}
        actual = test_fn(**kwargs)
        expected = ref_fn(**expected_kwargs)
        torch.testing.assert_close(actual, expected, **close)

        trained = [name for name, value in kwargs.items() if isinstance(value, torch.Tensor) and value.requires_grad]
        if trained:
            gradient = torch.randn_like(actual) if gradient is None else gradient
            actual.backward(gradient)
            expected.backward(gradient)
        close["check_stride"] = False
        for name in trained:
            torch.testing.assert_close(kwargs[name].grad, expected_kwargs[name].grad, **close)
